import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.AbstractSet;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.UnionSet;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.timeline.TimelineHashMap;

/**
 * The broker's assignors at work: one history of a group for each line of the standard input, one line of plans for each on the
 * standard output. tests/support/server_side.py writes the histories and describes both.
 *
 * <p>The assignors and the map of members are Kafka's own classes. What the coordinator does around them is here, on the
 * collections that it uses, since their orders decide the plans.
 */
public final class ServerSide {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> TOLD = List.of("join", "subscribe", "leave", "grow", "delete", "resolve");

    /** A member: its subscription as the coordinator's record has it, and its target. */
    private static final class Member {
        final String id;
        final String instance;
        List<String> names;
        String expression;
        Map<Uuid, Set<Integer>> target;
        /** The target as text; null after it has changed. Most plans change few members. */
        String written;
        boolean away;

        Member(String id, String instance, List<String> names, String expression, Map<Uuid, Set<Integer>> target) {
            this.id = id;
            this.instance = instance;
            this.names = names;
            this.expression = expression;
            this.target = target;
        }
    }

    private final PartitionAssignor assignor;
    private final TimelineHashMap<String, Member> members;
    private final Map<String, Uuid> ids = new HashMap<>();
    private final Map<Uuid, String> topicNames = new HashMap<>();
    private final Map<Uuid, Integer> counts = new HashMap<>();
    private final Map<String, List<String>> resolved = new TreeMap<>();
    private boolean pending;
    private StringBuilder plan;

    private ServerSide(String assignor) throws ReflectiveOperationException {
        this.assignor = assignor.equals("range") ? new RangeAssignor() : new UniformAssignor();
        members = new TimelineHashMap<>(registry(), 0);
    }

    /** The class of the log context has another package from 4.4 on. */
    private static SnapshotRegistry registry() throws ReflectiveOperationException {
        var constructor = java.util.Arrays.stream(SnapshotRegistry.class.getConstructors())
            .filter(one -> one.getParameterCount() == 1).findFirst().orElseThrow();
        Object context = constructor.getParameterTypes()[0].getConstructor().newInstance();
        return (SnapshotRegistry) constructor.newInstance(context);
    }

    public static void main(String[] args) throws IOException, ReflectiveOperationException {
        boolean whole = args.length > 0 && args[0].equals("whole");
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                JsonNode history = JSON.readTree(line);
                ServerSide group = new ServerSide(history.get("assignor").asText());
                List<String> plans = new ArrayList<>();
                for (JsonNode event : history.get("events")) {
                    group.plan = null;
                    group.apply(event);
                    plans.add(group.plan == null ? null : whole ? group.plan.toString() : digest(group.plan.toString()));
                }
                out.println(JSON.writeValueAsString(plans));
            }
        }
        out.flush();
    }

    private static String digest(String text) {
        try {
            byte[] bytes = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(bytes, 0, 6);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    private void apply(JsonNode event) {
        String kind = TOLD.stream().filter(event::has).findFirst().orElse("plan");
        boolean now = !event.has("later");
        switch (kind) {
            case "join" -> join(event, now);
            case "subscribe" -> subscribe(members.get(event.get("subscribe").asText()), event, now);
            case "leave" -> leave(event, now);
            case "grow" -> grow(event, now);
            case "delete" -> delete(event.get("delete").asText(), now);
            case "resolve" -> resolve(event, now);
            default -> planLater(true);
        }
    }

    private static List<String> list(JsonNode names) {
        List<String> found = new ArrayList<>();
        names.forEach(name -> found.add(name.asText()));
        return found;
    }

    private static String text(JsonNode event, String field) {
        return event.hasNonNull(field) ? event.get(field).asText() : null;
    }

    private void join(JsonNode event, boolean now) {
        String id = event.get("join").asText();
        String instance = text(event, "instance");
        List<String> asked = list(event.get("names"));
        String expression = text(event, "expression");
        Member known = members.get(id);
        if (known != null) {
            known.away = false;
            subscribe(known, event, now);
            return;
        }
        Member old = members.values().stream()
            .filter(one -> instance != null && instance.equals(one.instance)).findFirst().orElse(null);
        Map<Uuid, Set<Integer>> target = old == null ? Collections.emptyMap() : readBack(old.target);
        Member member = new Member(id, instance, new ArrayList<>(new TreeSet<>(asked)), expression, target);
        if (old == null) {
            pending = true;
        } else {
            boolean replacing = !Objects.equals(old.expression, expression);
            pending |= !old.names.equals(member.names) || replacing && (expression == null || resolved.containsKey(expression));
        }
        if (pending && now) {
            compute(member, asked, old);
        }
        if (old != null) {
            members.remove(old.id);
        }
        // The record of the subscription, then that of the assignment.
        members.put(id, member);
        members.put(id, member);
        forgetUnusedExpressions();
    }

    private void subscribe(Member member, JsonNode event, boolean now) {
        List<String> asked = list(event.get("names"));
        List<String> names = new ArrayList<>(new TreeSet<>(asked));
        String expression = text(event, "expression");
        pending |= !names.equals(member.names);
        pending |= !Objects.equals(expression, member.expression) && (expression == null || resolved.containsKey(expression));
        member.names = names;
        member.expression = expression;
        if (pending && now) {
            compute(member, asked, null);
        }
        forgetUnusedExpressions();
    }

    private void forgetUnusedExpressions() {
        resolved.keySet().retainAll(members.values().stream().map(one -> one.expression).collect(Collectors.toSet()));
    }

    private void leave(JsonNode event, boolean now) {
        Member member = members.get(event.get("leave").asText());
        if (event.has("returning")) {
            member.away = true;
            return;
        }
        members.remove(member.id);
        forgetUnusedExpressions();
        pending = true;
        planLater(now);
    }

    private void grow(JsonNode event, boolean now) {
        String name = event.get("grow").asText();
        Uuid id = Uuid.fromString(event.get("id").asText());
        Integer before = counts.put(id, event.get("partitions").asInt());
        ids.put(name, id);
        topicNames.put(id, name);
        pending |= subscribed(name) && !Objects.equals(before, counts.get(id));
        planLater(now);
    }

    private void delete(String name, boolean now) {
        Uuid id = ids.remove(name);
        topicNames.remove(id);
        counts.remove(id);
        pending |= subscribed(name);
        planLater(now);
    }

    private void resolve(JsonNode event, boolean now) {
        String expression = event.get("resolve").asText();
        List<String> names = new ArrayList<>(new TreeSet<>(list(event.get("names"))));
        boolean used = members.values().stream().anyMatch(member -> expression.equals(member.expression));
        List<String> before = resolved.put(expression, names);
        pending |= used && !names.equals(before);
        planLater(now);
    }

    private boolean subscribed(String name) {
        return members.values().stream().anyMatch(member -> member.names.contains(name)
            || member.expression != null && resolved.getOrDefault(member.expression, List.of()).contains(name));
    }

    private void planLater(boolean now) {
        if (members.isEmpty()) {
            pending = false;
        } else if (pending && now) {
            compute(null, null, null);
        }
    }

    /** The topics of a member, like the coordinator's own class: topics that do not exist count in {@code size} only. */
    private final class Topics extends AbstractSet<Uuid> {
        private final Set<String> names;

        Topics(Set<String> names) {
            this.names = names;
        }

        @Override
        public int size() {
            return names.size();
        }

        @Override
        public boolean contains(Object id) {
            String name = topicNames.get(id);
            return name != null && names.contains(name);
        }

        @Override
        public Iterator<Uuid> iterator() {
            List<Uuid> found = new ArrayList<>();
            for (String name : names) {
                if (ids.containsKey(name)) {
                    found.add(ids.get(name));
                }
            }
            return found.iterator();
        }
    }

    private record Subscription(Optional<String> instanceId, Set<Uuid> subscribedTopicIds) implements MemberSubscription {
        @Override
        public Optional<String> rackId() {
            return Optional.empty();
        }
    }

    private record Held(Map<Uuid, Set<Integer>> partitions) implements MemberAssignment { }

    private Set<Uuid> topics(Member member, List<String> asked) {
        Set<String> names = new HashSet<>(asked == null ? member.names : asked);
        List<String> matched = member.expression == null ? null : resolved.get(member.expression);
        if (matched != null) {
            Set<String> found = new HashSet<>(matched);
            if (names.isEmpty()) {
                names = found;
            } else if (!found.isEmpty()) {
                names = new UnionSet<>(names, found);
            }
        }
        return new Topics(names);
    }

    private void compute(Member requester, List<String> asked, Member replaced) {
        Map<String, Member> specs = new HashMap<>();
        members.forEach(specs::put);
        Map<String, Member> changes = new HashMap<>();
        if (requester != null) {
            changes.put(requester.id, requester);
        }
        if (replaced != null) {
            changes.put(replaced.id, null);
        }
        changes.forEach((id, member) -> {
            if (member == null) {
                specs.remove(id);
            } else {
                specs.put(id, member);
            }
        });
        Map<Uuid, Set<Integer>> assigned = new HashMap<>();
        specs.values().forEach(member -> member.target.forEach(
            (id, partitions) -> assigned.computeIfAbsent(id, __ -> new HashSet<>()).addAll(partitions)));
        Map<String, Subscription> subscriptions = new HashMap<>();
        specs.forEach((id, member) -> subscriptions.put(
            id, new Subscription(Optional.ofNullable(member.instance), topics(member, member == requester ? asked : null))));
        SubscriptionType type = type(specs);
        GroupSpec spec = new GroupSpec() {
            @Override
            public Collection<String> memberIds() {
                return specs.keySet();
            }

            @Override
            public SubscriptionType subscriptionType() {
                return type;
            }

            @Override
            public boolean isPartitionAssigned(Uuid id, int partition) {
                return assigned.getOrDefault(id, Set.of()).contains(partition);
            }

            /** Without {@code @Override}, since the interface has this method only from 4.1 on. */
            public boolean isPartitionAssignable(Uuid id, int partition) {
                return true;
            }

            @Override
            public MemberSubscription memberSubscription(String id) {
                return subscriptions.get(id);
            }

            @Override
            public MemberAssignment memberAssignment(String id) {
                return new Held(Collections.unmodifiableMap(specs.get(id).target));
            }
        };
        GroupAssignment assignment = assignor.assign(spec, new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid id) {
                return counts.getOrDefault(id, -1);
            }

            @Override
            public Set<String> racksForPartition(Uuid id, int partition) {
                return Set.of();
            }
        });
        plan = new StringBuilder();
        specs.forEach((id, member) -> {
            MemberAssignment made = assignment.members().get(id);
            Map<Uuid, Set<Integer>> next = made == null ? Collections.emptyMap() : made.partitions();
            if (!next.equals(member.target)) {
                member.target = readBack(next);
                member.written = null;
            }
            if (member.written == null) {
                member.written = written(id, member.target);
            }
            plan.append(member.written);
        });
        pending = false;
    }

    private static String written(String id, Map<Uuid, Set<Integer>> target) {
        StringBuilder text = new StringBuilder(id).append('=');
        target.forEach((topic, partitions) -> {
            text.append(topic).append(':');
            char separator = 0;
            for (int partition : partitions) {
                if (separator != 0) {
                    text.append(separator);
                }
                text.append(partition);
                separator = ',';
            }
            text.append(';');
        });
        return text.append('\n').toString();
    }

    /** What the coordinator reads from the record of a target. */
    private static Map<Uuid, Set<Integer>> readBack(Map<Uuid, Set<Integer>> target) {
        List<Map.Entry<Uuid, List<Integer>>> written = new ArrayList<>();
        target.forEach((id, partitions) -> written.add(Map.entry(id, new ArrayList<>(partitions))));
        return written.stream().collect(Collectors.toMap(Map.Entry::getKey, entry -> new HashSet<>(entry.getValue())));
    }

    /** By the counts of subscribers, as in {@code ConsumerGroup.subscriptionType}. */
    private SubscriptionType type(Map<String, Member> specs) {
        Map<String, Integer> expressions = new LinkedHashMap<>();
        Map<String, Integer> byName = new HashMap<>();
        specs.values().forEach(member -> {
            member.names.forEach(name -> byName.merge(name, 1, Integer::sum));
            if (member.expression != null) {
                expressions.merge(member.expression, 1, Integer::sum);
            }
        });
        boolean equal = expressions.isEmpty()
            ? byName.values().stream().allMatch(count -> count == specs.size())
            : expressions.values().iterator().next() == specs.size() && byName.isEmpty();
        return equal ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
    }
}
