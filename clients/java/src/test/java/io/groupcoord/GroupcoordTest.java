package io.groupcoord;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

@WithGroupcoord(topics = {"orders:2", "payments"})
class GroupcoordTest {
    @Test
    void recordsAreWrittenAndRead(Groupcoord kafka) {
        kafka.produce("orders", "an espresso", "a lungo");
        kafka.produceKeyed("payments", "alice", "3 €");
        List<Groupcoord.StoredRecord> orders = kafka.records("orders");
        assertEquals(List.of("an espresso", "a lungo"), orders.stream().map(Groupcoord.StoredRecord::value).toList());
        assertEquals("alice", kafka.records("payments").get(0).key());
        assertEquals("3 €", new String(kafka.records("payments").get(0).bytes(), java.nio.charset.StandardCharsets.UTF_8));
    }

    @Test
    void topicsComeAndGo(Groupcoord kafka) {
        kafka.createTopic("compacted", 3, Map.of("cleanup.policy", "compact"));
        assertTrue(kafka.status().topics().contains("compacted"));
        kafka.deleteTopic("compacted");
        assertFalse(kafka.status().topics().contains("compacted"));
    }

    @Test
    void offsetsAreSeededAndFound(Groupcoord kafka) {
        kafka.produce("orders", "a", "b", "c");
        kafka.group("app").commit("orders", 0, 1);
        assertEquals(1, kafka.group("app").offsets().get(0).offset());
        assertEquals(2L, kafka.group("app").lag().get(0).lag());
        assertEquals(List.of("app"), kafka.groups());
        assertEquals("Empty", kafka.group("app").describe().state());
    }

    @Test
    void aConsumerReadsAndItsGroupIsSeen(Groupcoord kafka) throws Exception {
        kafka.produce("orders", "an espresso");
        try (var consumer = new PollingConsumer(kafka, "app", "a", "orders")) {
            Groupcoord.GroupDescription seen = kafka.group("app").waitStable(1);
            assertEquals("a", seen.members().get(0).clientId());
            kafka.group("app").forceRebalance("the test wants it");
            kafka.group("app").waitGeneration(seen.generation() + 1);
            assertTrue(kafka.whyGeneration("app", seen.generation() + 1).contains("the test wants it"));
        }
        assertEquals(0, kafka.group("app").waitEmpty().members().size());
    }

    @Test
    void heldRequestsGoOnWhenTheTestSaysSo(Groupcoord kafka) throws Exception {
        Faults.Rule held = kafka.when("JoinGroup").group("app").hold();
        try (var consumer = new PollingConsumer(kafka, "app", "a", "orders")) {
            assertEquals("JoinGroup", held.waitHeld(1).get(0).api());
            held.release();
            kafka.group("app").waitStable(1);
            assertEquals(1, held.uses());
        }
    }

    @Test
    void aRefusedFieldIsNamed(Groupcoord kafka) {
        var refused = assertThrows(GroupcoordException.class, () -> kafka.when("Heartbeat").refuse("REBALANCE"));
        assertEquals(422, refused.status());
        assertEquals(2, refused.getMessage().split("code: ").length, refused.getMessage());
        var gone = assertThrows(GroupcoordException.class, () -> kafka.deleteTopic("nothing"));
        assertEquals(404, gone.status());
    }

    @Test
    void theTimeIsTheTests(Groupcoord kafka) throws Exception {
        try (var consumer = new PollingConsumer(kafka, "app", "a", "orders")) {
            kafka.group("app").waitStable(1);
            assertTrue(kafka.clock().deadlines().stream().anyMatch(each -> "app".equals(each.group())));
            kafka.clock().advance(Duration.ofMillis(1500));
        }
    }

    @Test
    void aResetIsACleanBroker(Groupcoord kafka) {
        kafka.createTopic("later", 1);
        String before = kafka.address();
        assertEquals(List.of(), kafka.reset());
        assertEquals(before, kafka.address());
        assertFalse(kafka.status().topics().contains("later"));
        kafka.stop();
        kafka.restart();
        assertEquals("up", kafka.status().state());
    }

    @Test
    void brokersHaveNothingInCommon(Groupcoord kafka) {
        Groupcoord other = kafka.newBroker(new Groupcoord.BrokerSettings().topic("orders", 1));
        assertNotEquals(kafka.address(), other.address());
        other.produce("orders", "only there");
        assertEquals(List.of(), kafka.records("orders"));
        assertEquals(List.of(), other.end());
    }

    @Test
    @WithGroupcoord(brokers = 3, topics = "orders:1")
    void aCoordinatorMoves(Groupcoord kafka) {
        kafka.group("app").commit("orders", 0, 5);
        kafka.group("app").moveCoordinator(3);
        assertEquals(5, kafka.group("app").offsets().get(0).offset());
    }

    @Test
    @WithGroupcoord(brokers = 3)
    void aControllerThatIsKilledIsElectedAnew(Groupcoord kafka) {
        assertEquals("stopped", kafka.controller().kill().state());
        kafka.controller().start();
        assertEquals(2, kafka.controller().describe().epoch());
        assertEquals("paused", kafka.controller().pause().state());
        assertEquals("running", kafka.controller().resume().state());
        assertThrows(GroupcoordException.class, () -> kafka.controller().resume());
    }

    @Test
    @WithGroupcoord(brokers = 3)
    void aBrokerThatIsKilledIsFencedAndComesBack(Groupcoord kafka) {
        assertFalse(kafka.node(2).kill().fenced());
        kafka.clock().advance(Duration.ofSeconds(9));
        assertEquals("stopped", kafka.node(2).waitFenced().state());
        kafka.node(2).start();
        assertEquals("running", kafka.node(2).waitRunning().state());
        assertThrows(GroupcoordException.class, () -> kafka.node(2).resume());
        assertEquals(500, kafka.node(2).slowDisk(Duration.ofMillis(500)).slowDiskMs());
        kafka.node(2).slowDisk(Duration.ZERO);
        assertEquals(List.of("3"), kafka.node(2).cutOff("3").cutOffFrom());
        assertEquals("running, cut off from broker 3", kafka.node(2).describe().condition());
    }
}
