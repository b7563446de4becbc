import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions by Kafka's own client. What it is told and what it says: tests/clients/program_transactions.py. */
class JavaTransactions {
    private static final Duration A_MOMENT = Duration.ofMillis(50);

    private final String bootstrap;
    private final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private final Map<String, KafkaConsumer<String, String>> members = new HashMap<>();

    private JavaTransactions(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] arguments) throws IOException {
        var program = new JavaTransactions(arguments[0]);
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            String answer;
            try {
                answer = "ok" + program.answer(words);
            } catch (ExecutionException failure) {
                answer = "failed " + failure.getCause().getClass().getSimpleName();
            } catch (Exception failure) {
                answer = "failed " + failure.getClass().getSimpleName();
            }
            System.out.println(words[0] + " " + answer);
        }
        Runtime.getRuntime().halt(0);  // what is open stays open, as when an application is killed
    }

    private String answer(String[] words) throws Exception {
        String name = words[0];
        var producer = producers.get(name);
        switch (words[1]) {
            case "open" -> open(name, words);
            case "begin" -> producer.beginTransaction();
            case "send" -> producer.send(new ProducerRecord<>(words[2], 0, null, words[3])).get();
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "transform" -> transform(name, words[2], Integer.parseInt(words[3]), words[4]);
            case "read" -> {
                return " " + String.join(" ", read(words[2], words[3], words[4]));
            }
            default -> throw new IllegalArgumentException(words[1]);
        }
        return "";
    }

    private void open(String name, String[] words) {
        var properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("transactional.id", words[2]);
        properties.put("transaction.timeout.ms", words[3]);
        properties.put("linger.ms", "0");
        properties.put("reconnect.backoff.max.ms", "200");
        var producer = new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
        producers.put(name, producer);
        producer.initTransactions();
        if (words.length > 4) {
            properties = reading("read_committed");
            properties.put("group.id", words[4]);
            properties.put("group.protocol", "consumer");
            members.put(name, new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer()));
            members.get(name).subscribe(List.of(words[5]));
        }
    }

    private void transform(String name, String target, int count, String how) throws Exception {
        var producer = producers.get(name);
        var member = members.get(name);
        var next = new HashMap<TopicPartition, OffsetAndMetadata>();
        var first = new HashMap<TopicPartition, Long>();
        producer.beginTransaction();
        for (int done = 0; done < count;) {
            for (var record : member.poll(A_MOMENT)) {
                producer.send(new ProducerRecord<>(target, 0, null, record.value().toUpperCase()));
                var partition = new TopicPartition(record.topic(), record.partition());
                first.putIfAbsent(partition, record.offset());
                next.put(partition, new OffsetAndMetadata(record.offset() + 1));
                done++;
            }
        }
        producer.flush();
        producer.sendOffsetsToTransaction(next, member.groupMetadata());
        if (how.equals("commit")) {
            producer.commitTransaction();
        } else if (how.equals("abort")) {
            producer.abortTransaction();
            first.forEach(member::seek);
        }
    }

    private List<String> read(String isolation, String topic, String last) {
        var found = new ArrayList<String>();
        try (var consumer =
                new KafkaConsumer<>(reading(isolation), new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            while (!found.contains(last)) {
                consumer.poll(A_MOMENT).forEach(record -> found.add(record.value()));
            }
        }
        return found;
    }

    private Properties reading(String isolation) {
        var properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("isolation.level", isolation);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("fetch.max.wait.ms", "100");
        properties.put("reconnect.backoff.max.ms", "200");
        return properties;
    }
}
