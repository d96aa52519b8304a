import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One Java consumer under test. It reads commands from its standard input, one per line, and writes events to its
 * standard output, one JSON object per line. tests/support/members.py starts it and describes both.
 *
 * <p>Arguments: consumer properties, each as {@code name=value}. The end of the input means that the test has ended.
 */
public final class Member {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(100);

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final BlockingQueue<String> commands = new LinkedBlockingQueue<>();
    private boolean subscribed;
    private boolean open = true;

    private Member(Properties properties) {
        consumer = new KafkaConsumer<>(properties);
    }

    public static void main(String[] args) {
        Properties properties = new Properties();
        properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
        for (String arg : args) {
            int equals = arg.indexOf('=');
            properties.put(arg.substring(0, equals), arg.substring(equals + 1));
        }
        Member member = new Member(properties);
        Thread reader = new Thread(member::readCommands, "commands");
        reader.setDaemon(true);
        reader.start();
        emit("started", Map.of("pid", ProcessHandle.current().pid()));
        try {
            member.run();
        } catch (KafkaException | InterruptedException error) {
            emit("error", Map.of("error", error.toString()));
            throw new IllegalStateException(error);
        }
    }

    private void readCommands() {
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                commands.add(line);
            }
        } catch (IOException error) {
            emit("error", Map.of("error", error.toString()));
        }
        Runtime.getRuntime().halt(3);
    }

    private void run() throws InterruptedException {
        while (open) {
            String command = subscribed ? commands.poll() : commands.take();
            if (command != null) {
                obey(command.split(" ", 2));
            } else {
                report(consumer.poll(POLL));
            }
        }
    }

    private void obey(String[] command) throws InterruptedException {
        String argument = command.length > 1 ? command[1] : "";
        switch (command[0]) {
            case "subscribe" -> {
                consumer.subscribe(Arrays.asList(argument.split(",")), new Listener());
                subscribed = true;
            }
            case "stall" -> Thread.sleep(Long.parseLong(argument));
            case "commit" -> consumer.commitSync();
            case "close" -> {
                consumer.close();
                open = false;
            }
            default -> throw new IllegalArgumentException("unknown command " + command[0]);
        }
        emit(command[0] + "-done", Map.of());
    }

    private static void report(ConsumerRecords<byte[], byte[]> records) {
        if (records.isEmpty()) {
            return;
        }
        List<List<Object>> ranges = new ArrayList<>();
        for (TopicPartition partition : records.partitions()) {
            List<ConsumerRecord<byte[], byte[]>> some = records.records(partition);
            long first = some.get(0).offset();
            ranges.add(List.of(partition.topic(), partition.partition(), first, some.get(some.size() - 1).offset()));
        }
        emit("consumed", Map.of("offsets", ranges));
    }

    private static List<List<Object>> plain(Collection<TopicPartition> partitions) {
        List<List<Object>> all = new ArrayList<>();
        for (TopicPartition partition : partitions) {
            all.add(List.of(partition.topic(), partition.partition()));
        }
        return all;
    }

    private static synchronized void emit(String event, Map<String, ?> fields) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("event", event);
        line.put("at", ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()));
        line.putAll(fields);
        try {
            System.out.println(JSON.writeValueAsString(line));
        } catch (JsonProcessingException error) {
            throw new IllegalStateException(error);
        }
        System.out.flush();
    }

    private final class Listener implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            tell("assigned", partitions);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            tell("revoked", partitions);
        }

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {
            tell("lost", partitions);
        }

        private void tell(String event, Collection<TopicPartition> partitions) {
            ConsumerGroupMetadata group = consumer.groupMetadata();
            emit(event, Map.of(
                "generation", group.generationId(), "member", group.memberId(), "partitions", plain(partitions)));
        }
    }

    /** The events of a traced assignor. The assignor's arguments and results are not changed. */
    private static final class Trace {
        private boolean leader;

        void planned(ConsumerPartitionAssignor.GroupSubscription group) {
            leader = true;
            emit("planned", Map.of("members", group.groupSubscription().keySet()));
        }

        void synced(ConsumerPartitionAssignor.Assignment assignment, ConsumerGroupMetadata group) {
            emit("synced", Map.of(
                "generation", group.generationId(),
                "member", group.memberId(),
                "leader", leader,
                "partitions", plain(assignment.partitions())));
            leader = false;
        }
    }

    /** Kafka's own assignor, which also writes an event when it plans and when it gets an assignment. */
    public static final class TracedStickyAssignor extends StickyAssignor {
        private final Trace trace = new Trace();

        @Override
        public GroupAssignment assign(Cluster metadata, GroupSubscription group) {
            trace.planned(group);
            return super.assign(metadata, group);
        }

        @Override
        public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
            super.onAssignment(assignment, metadata);
            trace.synced(assignment, metadata);
        }
    }

    /** Kafka's own assignor, which also writes an event when it plans and when it gets an assignment. */
    public static final class TracedCooperativeStickyAssignor extends CooperativeStickyAssignor {
        private final Trace trace = new Trace();

        @Override
        public GroupAssignment assign(Cluster metadata, GroupSubscription group) {
            trace.planned(group);
            return super.assign(metadata, group);
        }

        @Override
        public void onAssignment(Assignment assignment, ConsumerGroupMetadata metadata) {
            super.onAssignment(assignment, metadata);
            trace.synced(assignment, metadata);
        }
    }
}
