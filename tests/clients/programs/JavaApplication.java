import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.LinkedBlockingQueue;

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A producer and a member of a group by Kafka's own client. What it is told and what it says: tests/clients/applications.py. */
class JavaApplication {
    private static final String END = "end";

    public static void main(String[] arguments) {
        var told = new Properties();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            told.put(parts[0], parts[1]);
        }
        var wishes = new LinkedBlockingQueue<String>();
        var common = new Properties();
        common.put("bootstrap.servers", told.get("bootstrap"));
        common.put("request.timeout.ms", told.get("request_timeout_ms"));
        common.put("reconnect.backoff.max.ms", "100");
        var producing = new Properties();
        producing.putAll(common);
        producing.put("acks", "all");
        producing.put("delivery.timeout.ms", "120000");
        var consuming = new Properties();
        consuming.putAll(common);
        consuming.put("group.id", told.get("group"));
        consuming.put("auto.offset.reset", "earliest");
        consuming.put("enable.auto.commit", "false");
        consuming.put("heartbeat.interval.ms", "100");
        consuming.put("session.timeout.ms", "30000");
        consuming.put("fetch.max.wait.ms", "100");
        String topic = told.getProperty("topic");

        try (var producer = new KafkaProducer<String, String>(producing, new StringSerializer(), new StringSerializer());
                var consumer = new KafkaConsumer<String, String>(consuming, new StringDeserializer(), new StringDeserializer())) {
            listen(producer, topic, wishes);
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    say("assigned " + partitions.size());
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    say("revoked " + partitions.size());
                }
            });
            for (String wish = wishes.poll(); !END.equals(wish); wish = wishes.poll()) {
                if (wish != null) {
                    consumer.commitSync(Duration.ofSeconds(120));
                    say("committed");
                }
                for (var record : consumer.poll(Duration.ofMillis(50))) {
                    say("read " + record.partition() + " " + record.offset() + " " + record.value());
                }
            }
        }
    }

    /** Sends what standard input says, and passes on what the consumer is to do. */
    private static void listen(KafkaProducer<String, String> producer, String topic, LinkedBlockingQueue<String> wishes) {
        var reader = new Thread(() -> {
            new BufferedReader(new InputStreamReader(System.in)).lines().forEach(line -> {
                String[] words = line.split(" ");
                if (words[0].equals("send")) {
                    producer.send(new ProducerRecord<>(topic, Integer.parseInt(words[1]), null, words[2]), (sent, failure) -> say(
                            failure == null
                                    ? "acknowledged " + sent.partition() + " " + sent.offset() + " " + words[2]
                                    : "failed " + failure));
                } else {
                    wishes.add(line);
                }
            });
            wishes.add(END);
        });
        reader.setDaemon(true);
        reader.start();
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
