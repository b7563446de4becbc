import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a group by Kafka's own client. What it is told and what it says: tests/clients/program_members.py. */
class JavaMember {
    private static volatile boolean ended;

    public static void main(String[] arguments) {
        Properties told = new Properties();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            told.put(parts[0], parts[1]);
        }
        Properties properties = new Properties();
        properties.put("bootstrap.servers", told.get("bootstrap"));
        properties.put("group.id", told.get("group"));
        properties.put("client.id", told.get("client"));
        properties.put("group.protocol", told.get("protocol"));
        if (told.containsKey("instance")) {
            properties.put("group.instance.id", told.get("instance"));
        }
        if (told.get("protocol").equals("classic")) {
            properties.put("heartbeat.interval.ms", "100");
            properties.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        }
        properties.put("auto.offset.reset", "earliest");
        properties.put("auto.commit.interval.ms", "100");
        properties.put("fetch.max.wait.ms", "100");

        Thread reader = new Thread(() -> {
            try {
                System.in.readAllBytes();
            } catch (java.io.IOException closed) {
                // The end of it, too.
            }
            ended = true;
        });
        reader.setDaemon(true);
        reader.start();
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<byte[], byte[]>(properties, bytes, bytes)) {
            subscribe(consumer, told.getProperty("topic"));
            while (!ended) {
                for (var record : consumer.poll(Duration.ofMillis(50))) {
                    say("read " + record.topic() + ":" + record.partition() + ":" + record.offset());
                }
            }
        } catch (KafkaException failure) {
            say("failed " + failure.getClass().getSimpleName());
        }
        say("closed");
    }

    private static void subscribe(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        var listener = new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                sayPartitions("assigned", partitions);
            }

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                sayPartitions("revoked", partitions);
            }
        };
        if (!topic.startsWith("^")) {
            consumer.subscribe(List.of(topic), listener);
        } else {
            consumer.subscribe(new SubscriptionPattern(topic), listener);
        }
    }

    private static void sayPartitions(String what, Collection<TopicPartition> partitions) {
        say(what + partitions.stream().map(p -> " " + p.topic() + ":" + p.partition()).sorted().collect(Collectors.joining()));
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
