import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * Java's sticky assignors in the race, bytes to bytes: the work of a leader between JoinGroup and SyncGroup, without a client.
 * The program follows the protocol that benches/race/measure.py describes. Processor time is that of the calling thread, without
 * the garbage collector and the compiler.
 */
public final class Race {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final int CALLS = 10;
    private static final int MOST_CALLS = 300;
    private static final int REPLICAS = 2;

    private record Member(String id, byte[] metadata) {}

    /** A point, and the cluster that it is on. */
    private record Point(Cluster cluster, List<Member> members) {
        static Point read(Path file) throws IOException {
            try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file), 1 << 16))) {
                Node[] nodes = new Node[in.readInt()];
                for (int rack = 0; rack < nodes.length; rack++) {
                    nodes[rack] = new Node(rack + 1, "localhost", 9092, in.readUTF());
                }
                if (nodes.length == 0) {
                    nodes = new Node[] {new Node(1, "localhost", 9092)};
                }
                List<PartitionInfo> partitions = new ArrayList<>();
                int topics = in.readInt();
                for (int topic = 0; topic < topics; topic++) {
                    String name = in.readUTF();
                    int count = in.readInt();
                    for (int partition = 0; partition < count; partition++) {
                        partitions.add(placed(name, partition, nodes));
                    }
                }
                List<Member> members = new ArrayList<>();
                int count = in.readInt();
                for (int member = 0; member < count; member++) {
                    String id = in.readUTF();
                    members.add(new Member(id, in.readNBytes(in.readInt())));
                }
                return new Point(new Cluster("race", Arrays.asList(nodes), partitions, Set.of(), Set.of()), members);
            }
        }

        private static PartitionInfo placed(String topic, int partition, Node[] nodes) {
            Node[] replicas = new Node[Math.min(REPLICAS, nodes.length)];
            for (int replica = 0; replica < replicas.length; replica++) {
                replicas[replica] = nodes[(partition + replica) % nodes.length];
            }
            return new PartitionInfo(topic, partition, replicas[0], replicas, replicas);
        }
    }

    /** The different plans among those of the first calls. */
    private static final class Plans {
        private final List<Member> members;
        private final List<byte[][]> different = new ArrayList<>();
        private final List<Integer> ofCall = new ArrayList<>();

        Plans(List<Member> members) {
            this.members = members;
        }

        void add(Map<String, ByteBuffer> plan) {
            if (ofCall.size() == CALLS) {
                return;
            }
            byte[][] listed = new byte[members.size()][];
            for (int member = 0; member < listed.length; member++) {
                ByteBuffer assignment = plan.get(members.get(member).id());
                if (assignment != null) {
                    listed[member] = new byte[assignment.remaining()];
                    assignment.duplicate().get(listed[member]);
                }
            }
            int known = 0;
            while (known < different.size() && !Arrays.deepEquals(different.get(known), listed)) {
                known++;
            }
            if (known == different.size()) {
                different.add(listed);
            }
            ofCall.add(known);
        }

        void write(Path file) throws IOException {
            try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(file)))) {
                out.writeInt(different.size());
                for (byte[][] plan : different) {
                    for (byte[] assignment : plan) {
                        out.writeInt(assignment == null ? -1 : assignment.length);
                        if (assignment != null) {
                            out.write(assignment);
                        }
                    }
                }
            }
        }
    }

    private final Point point;
    private final String strategy;
    private final List<Long> wall = new ArrayList<>();
    private final List<Long> cpu = new ArrayList<>();

    private Race(Point point, String strategy) {
        this.point = point;
        this.strategy = strategy;
    }

    /** The steps of a leading ConsumerCoordinator. An assignor remembers generations, so each call has a new one. */
    private Map<String, ByteBuffer> perform() {
        ConsumerPartitionAssignor assignor =
            strategy.equals("sticky") ? new StickyAssignor() : new CooperativeStickyAssignor();
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (Member member : point.members()) {
            Subscription subscription = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(member.metadata()));
            subscription.setGroupInstanceId(Optional.empty());
            subscriptions.put(member.id(), subscription);
        }
        Map<String, Assignment> plan =
            assignor.assign(point.cluster(), new GroupSubscription(subscriptions)).groupAssignment();
        Map<String, ByteBuffer> encoded = new HashMap<>();
        for (Map.Entry<String, Assignment> entry : plan.entrySet()) {
            encoded.put(entry.getKey(), ConsumerProtocol.serializeAssignment(entry.getValue()));
        }
        return encoded;
    }

    private Map<String, ByteBuffer> timed() {
        long used = THREADS.getCurrentThreadCpuTime();
        long start = System.nanoTime();
        Map<String, ByteBuffer> plan = perform();
        wall.add(System.nanoTime() - start);
        cpu.add(THREADS.getCurrentThreadCpuTime() - used);
        return plan;
    }

    private static double since(long start) {
        return (System.nanoTime() - start) / 1e9;
    }

    /** Calls as often as the request says; returns whether the first call counts. */
    private boolean measure(JsonNode request, Plans plans) throws IOException {
        double budget = request.get("budget").asDouble();
        long begin = System.nanoTime();
        Map<String, ByteBuffer> first = timed();
        tell(Map.of("event", "called"));
        if (2 * since(begin) > budget) {
            plans.add(first);
            return true;
        }
        while (since(begin) < request.get("warm").asDouble()) {
            timed();
        }
        wall.clear();
        cpu.clear();
        System.gc();
        long start = System.nanoTime();
        while (wall.size() < MOST_CALLS) {
            plans.add(timed());
            double elapsed = since(start);
            if (wall.size() >= CALLS && elapsed >= request.get("least").asDouble()) {
                break;
            }
            if (elapsed * (wall.size() + 1) / wall.size() > budget) {
                break;
            }
        }
        return false;
    }

    private static void tell(Map<String, ?> event) throws IOException {
        System.out.println(JSON.writeValueAsString(event));
    }

    private static void answer(JsonNode request) throws IOException {
        Point point = Point.read(Path.of(request.get("file").asText()));
        Race race = new Race(point, request.get("call").asText());
        Plans plans = new Plans(point.members());
        tell(Map.of("event", "loaded"));
        boolean cold = race.measure(request, plans);
        plans.write(Path.of(request.get("out").asText()));
        Map<String, Object> done = new LinkedHashMap<>();
        done.put("event", "done");
        done.put("cold", cold);
        done.put("wall", race.wall);
        done.put("cpu", race.cpu);
        done.put("plans", plans.ofCall);
        tell(done);
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                answer(JSON.readTree(line));
            } catch (IOException | RuntimeException | OutOfMemoryError error) {
                tell(Map.of("event", "failed", "error", error.toString()));
            }
        }
    }
}
