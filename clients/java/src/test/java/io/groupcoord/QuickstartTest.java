package io.groupcoord;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import org.junit.jupiter.api.Test;

/** The quickstart of the README, as it stands there. */
@WithGroupcoord(topics = "orders:6")
class QuickstartTest {
    @Test
    void aLostMemberHandsOver(Groupcoord kafka) throws Exception {
        try (var a = new PollingConsumer(kafka, "app", "a", "orders");
                var b = new PollingConsumer(kafka, "app", "b", "orders")) {
            kafka.group("app").waitStable(2);
            kafka.when("Heartbeat").group("app").clientId("b").always().drop().waitActed(1);
            kafka.clock().advance(Duration.ofSeconds(46));
            assertEquals(1, kafka.group("app").waitStable(1).members().size());
            assertTrue(kafka.whyMember("app", "b").contains("session of 45,000 ms ran out"));
        }
    }
}
