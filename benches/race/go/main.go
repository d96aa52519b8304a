// The Go clients in the race, bytes to bytes: what a leader does between JoinGroup and SyncGroup, without a connection. The
// argument names the client, franz-go or Sarama; each is called through its public interface only. The program answers the
// requests that benches/race/measure.py describes.
//
// Processor time is that of the process, the garbage collector's included, since Go has no clock for one goroutine.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

const (
	calls     = 10
	mostCalls = 300
)

type request struct {
	File   string  `json:"file"`
	Call   string  `json:"call"`
	Out    string  `json:"out"`
	Warm   float64 `json:"warm"`
	Budget float64 `json:"budget"`
	Least  float64 `json:"least"`
}

type done struct {
	Event string  `json:"event"`
	Cold  bool    `json:"cold"`
	Wall  []int64 `json:"wall"`
	CPU   []int64 `json:"cpu"`
	Plans []int   `json:"plans"`
}

type member struct {
	id       string
	metadata []byte
}

type point struct {
	topics  map[string]int32
	members []member
}

// By member id, the assignment as SyncGroup carries it.
type plan = map[string][]byte

// Returns the call that is timed, for the name of a strategy and a point. This preparation itself is not timed.
type client func(strategy string, group *point) (func() (plan, error), error)

var clients = map[string]client{"franz-go": franzGo, "sarama": saramaClient}

func load(file string) (*point, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	number := func() int32 {
		value := int32(binary.BigEndian.Uint32(data))
		data = data[4:]
		return value
	}
	take := func(size int) []byte {
		taken := data[:size]
		data = data[size:]
		return taken
	}
	text := func() string {
		size := int(binary.BigEndian.Uint16(data))
		data = data[2:]
		return string(take(size))
	}
	for racks := number(); racks > 0; racks-- {
		text()
	}
	loaded := &point{topics: make(map[string]int32)}
	for topics := number(); topics > 0; topics-- {
		name := text()
		loaded.topics[name] = number()
	}
	for members := number(); members > 0; members-- {
		id := text()
		loaded.members = append(loaded.members, member{id, take(int(number()))})
	}
	return loaded, nil
}

// The different plans among those of the first calls.
type plans struct {
	members   []member
	different [][][]byte
	ofCall    []int
}

func (p *plans) add(added plan) {
	if len(p.ofCall) == calls {
		return
	}
	listed := make([][]byte, len(p.members))
	for i, member := range p.members {
		listed[i] = added[member.id]
	}
	for i, known := range p.different {
		if same(known, listed) {
			p.ofCall = append(p.ofCall, i)
			return
		}
	}
	p.ofCall = append(p.ofCall, len(p.different))
	p.different = append(p.different, listed)
}

func same(left, right [][]byte) bool {
	for i := range left {
		if !bytes.Equal(left[i], right[i]) {
			return false
		}
	}
	return true
}

func (p *plans) write(file string) error {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(p.different)))
	for _, listed := range p.different {
		for _, assignment := range listed {
			if assignment == nil {
				out = binary.BigEndian.AppendUint32(out, ^uint32(0))
				continue
			}
			out = binary.BigEndian.AppendUint32(out, uint32(len(assignment)))
			out = append(out, assignment...)
		}
	}
	return os.WriteFile(file, out, 0o644)
}

func processorTime() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func tell(event any) {
	line, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

func answer(prepare client, asked request) error {
	group, err := load(asked.File)
	if err != nil {
		return err
	}
	perform, err := prepare(asked.Call, group)
	if err != nil {
		return err
	}
	found := plans{members: group.members}
	result := done{Event: "done"}
	tell(map[string]string{"event": "loaded"})
	timed := func() (plan, error) {
		used, start := processorTime(), time.Now()
		made, err := perform()
		result.Wall = append(result.Wall, time.Since(start).Nanoseconds())
		result.CPU = append(result.CPU, processorTime()-used)
		return made, err
	}
	begin := time.Now()
	first, err := timed()
	if err != nil {
		return err
	}
	tell(map[string]string{"event": "called"})
	if 2*time.Since(begin).Seconds() > asked.Budget {
		found.add(first)
		result.Cold = true
	} else {
		for time.Since(begin).Seconds() < asked.Warm {
			if _, err := timed(); err != nil {
				return err
			}
		}
		result.Wall, result.CPU = nil, nil
		runtime.GC()
		start := time.Now()
		for len(result.Wall) < mostCalls {
			made, err := timed()
			if err != nil {
				return err
			}
			found.add(made)
			elapsed, count := time.Since(start).Seconds(), float64(len(result.Wall))
			if count >= calls && elapsed >= asked.Least || elapsed*(count+1)/count > asked.Budget {
				break
			}
		}
	}
	if err := found.write(asked.Out); err != nil {
		return err
	}
	result.Plans = found.ofCall
	tell(result)
	return nil
}

func main() {
	prepare, known := clients[os.Args[1]]
	if !known {
		panic("no client " + os.Args[1])
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var asked request
		err := json.Unmarshal(in.Bytes(), &asked)
		if err == nil {
			err = answer(prepare, asked)
		}
		if err != nil {
			tell(map[string]string{"event": "failed", "error": err.Error()})
		}
	}
}
