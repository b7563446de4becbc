import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Properties;

import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Kafka's own producer. It is told {@code bootstrap}, {@code topic} and settings as {@code name=value}, and then sends a record for
 * each line of its standard input: partition (or -), key (or -), number of bytes, timestamp. In the end it flushes.
 */
class JavaProducer {
    public static void main(String[] arguments) throws IOException {
        var properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        for (int each = 2; each < arguments.length; each++) {
            String[] setting = arguments[each].split("=", 2);
            properties.put(setting[0], setting[1]);
        }
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            var lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                Integer partition = words[0].equals("-") ? null : Integer.valueOf(words[0]);
                byte[] key = words[1].equals("-") ? null : words[1].getBytes();
                byte[] value = new byte[Integer.parseInt(words[2])];
                producer.send(new ProducerRecord<>(arguments[1], partition, Long.valueOf(words[3]), key, value));
            }
            producer.flush();
        }
    }
}
