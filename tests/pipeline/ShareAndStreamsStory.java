// The lives of a share group and of a streams group, for recordings/share-and-streams.jsonl; record_share_and_streams.py runs it.
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;

public class ShareAndStreamsStory {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long REST_MS = 4_000; // some heartbeats

    public static void main(String[] arguments) throws Exception {
        share(arguments[0]);
        streams(arguments[0], arguments[1]);
    }

    /** Judy, then Ken as well, then Ken alone, then nobody, then Judy again. */
    private static void share(String bootstrap) {
        KafkaShareConsumer<byte[], byte[]> judy = shareMember(bootstrap, "judy");
        rest(List.of(judy));
        KafkaShareConsumer<byte[], byte[]> ken = shareMember(bootstrap, "ken");
        rest(List.of(judy, ken));
        judy.close();
        rest(List.of(ken));
        ken.close();
        KafkaShareConsumer<byte[], byte[]> again = shareMember(bootstrap, "judy");
        rest(List.of(again));
        again.close();
    }

    private static KafkaShareConsumer<byte[], byte[]> shareMember(String bootstrap, String name) {
        KafkaShareConsumer<byte[], byte[]> made = new KafkaShareConsumer<>(
            Map.of("bootstrap.servers", bootstrap, "group.id", "jobs", "client.id", name),
            new ByteArrayDeserializer(),
            new ByteArrayDeserializer());
        made.subscribe(List.of("orders", "payments"));
        return made;
    }

    private static void rest(List<KafkaShareConsumer<byte[], byte[]>> members) {
        long end = System.currentTimeMillis() + REST_MS;
        while (System.currentTimeMillis() < end) members.forEach(one -> one.poll(POLL));
    }

    /** One instance, two, one, none: copies one topic into another. */
    private static void streams(String bootstrap, String folder) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("orders").to("copies");
        Topology topology = builder.build();
        KafkaStreams first = instance(topology, bootstrap, folder, "leo");
        Thread.sleep(2 * REST_MS);
        KafkaStreams second = instance(topology, bootstrap, folder, "mia");
        Thread.sleep(2 * REST_MS);
        close(first);
        Thread.sleep(2 * REST_MS);
        close(second);
    }

    /** It leaves the group for good, as an instance does that is taken down. */
    private static void close(KafkaStreams one) {
        one.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP));
    }

    private static KafkaStreams instance(Topology topology, String bootstrap, String folder, String name) {
        java.util.Properties settings = new java.util.Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "copier");
        settings.put(StreamsConfig.CLIENT_ID_CONFIG, name);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, folder + "/" + name);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put("group.protocol", "streams");
        settings.put("auto.offset.reset", "earliest");
        KafkaStreams made = new KafkaStreams(topology, settings);
        made.start();
        return made;
    }
}
