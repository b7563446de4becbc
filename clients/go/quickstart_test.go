package groupcoord_test

import (
	"strings"
	"testing"
	"time"

	groupcoord "github.com/groupcoord/groupcoord/clients/go"
)

// The quickstart of the README, as it stands there.
func TestALostMemberHandsOver(t *testing.T) {
	kafka := groupcoord.Start(t, groupcoord.Topic("orders", 6), groupcoord.ManualClock())
	consume(t, kafka, "app", "a", "orders")
	consume(t, kafka, "app", "b", "orders")
	kafka.Group("app").WaitStable(2)
	kafka.Drop("Heartbeat", groupcoord.Match{Group: "app", ClientID: "b", Times: -1}).WaitActed(1)
	kafka.Advance(46 * time.Second)
	kafka.Group("app").WaitStable(1)
	if why := kafka.WhyMember("app", "b"); !strings.Contains(why, "session of 45,000 ms ran out") {
		t.Error(why)
	}
}
