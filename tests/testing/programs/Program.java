import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A consumer as anybody would write it: prints what it reads. */
public class Program {
    public static void main(String[] arguments) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", arguments[0],
            "group.id", "app",
            "client.id", arguments[1],
            "auto.offset.reset", "earliest",
            "heartbeat.interval.ms", 50,
            "key.deserializer", StringDeserializer.class,
            "value.deserializer", StringDeserializer.class);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of("orders"));
            while (true) {
                consumer.poll(Duration.ofSeconds(1)).forEach(message -> System.out.println(message.value()));
            }
        }
    }
}
