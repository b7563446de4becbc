package groupcoord_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	groupcoord "github.com/groupcoord/groupcoord/clients/go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consume starts a member of a group that polls until the test ends.
func consume(t *testing.T, kafka *groupcoord.Broker, group, clientID, topic string) {
	t.Helper()
	client, err := kgo.NewClient(
		kgo.SeedBrokers(kafka.Address), kgo.ClientID(clientID), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.HeartbeatInterval(50*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(kgo.RangeBalancer()),
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			client.PollFetches(ctx)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
		client.CloseAllowingRebalance()
	})
}

func TestRecordsAreWrittenAndRead(t *testing.T) {
	kafka := groupcoord.Start(t, groupcoord.Topic("orders", 2))
	kafka.Produce("orders", "an espresso", "a lungo")
	kafka.ProduceKeyed("orders", "alice", "3 €")
	var values []string
	for _, record := range kafka.Records("orders") {
		values = append(values, *record.Value)
	}
	if !slices.Equal(slices.Sorted(slices.Values(values)), []string{"3 €", "a lungo", "an espresso"}) {
		t.Error(values)
	}
}

func TestTopicsComeAndGo(t *testing.T) {
	kafka := groupcoord.Start(t)
	kafka.CreateTopic("compacted", 3, map[string]string{"cleanup.policy": "compact"})
	if !slices.Contains(kafka.Status().Topics, "compacted") {
		t.Error(kafka.Status().Topics)
	}
	kafka.DeleteTopic("compacted")
	if slices.Contains(kafka.Status().Topics, "compacted") {
		t.Error(kafka.Status().Topics)
	}
}

func TestOffsetsAreSeededAndFound(t *testing.T) {
	kafka := groupcoord.Start(t, groupcoord.Topic("orders", 1))
	kafka.Produce("orders", "a", "b", "c")
	group := kafka.Group("app")
	group.Commit("orders", 0, 1)
	if offsets, lag := group.Offsets(), group.Lag(); offsets[0].Offset != 1 || *lag[0].Lag != 2 {
		t.Error(offsets, lag)
	}
	if state := group.WaitCommitted("orders", 0, 1).State; state != "Empty" {
		t.Error(state)
	}
}

func TestHeldRequestsGoOnWhenTheTestSaysSo(t *testing.T) {
	kafka := groupcoord.Start(t, groupcoord.Topic("orders", 1), groupcoord.ManualClock())
	held := kafka.Hold("JoinGroup", groupcoord.Match{Group: "app", Times: 1})
	consume(t, kafka, "app", "a", "orders")
	if waiting := held.WaitHeld(1); waiting[0].API != "JoinGroup" {
		t.Error(waiting)
	}
	held.Release()
	seen := kafka.Group("app").WaitStable(1)
	if held.Uses() != 1 || seen.Members[0].ClientID != "a" || len(kafka.Deadlines()) == 0 {
		t.Error(held.Uses(), seen)
	}
	kafka.Group("app").ForceRebalance("the test wants it")
	kafka.Group("app").WaitGeneration(seen.Generation + 1)
	if why := kafka.WhyGeneration("app", seen.Generation+1); !strings.Contains(why, "the test wants it") {
		t.Error(why)
	}
}

func TestAMemberIsExpired(t *testing.T) {
	kafka := groupcoord.Start(t, groupcoord.Topic("orders", 1), groupcoord.ManualClock())
	refused := kafka.Refuse("LeaveGroup", groupcoord.Match{Group: "app", Optional: true}, "COORDINATOR_NOT_AVAILABLE")
	consume(t, kafka, "app", "a", "orders")
	kafka.Group("app").WaitStable(1)
	kafka.Group("app").ExpireMember("a")
	refused.Remove()
	kafka.Group("app").WaitStable(1)
	if !strings.Contains(kafka.Trace(), "session") {
		t.Error(kafka.Trace())
	}
}

func TestACoordinatorMoves(t *testing.T) {
	kafka := groupcoord.Start(t, groupcoord.Topic("orders", 1), groupcoord.Brokers(3))
	kafka.Group("app").Commit("orders", 0, 5)
	kafka.Group("app").MoveCoordinator(3)
	if offsets := kafka.Group("app").Offsets(); offsets[0].Offset != 5 {
		t.Error(offsets)
	}
}

func TestAControllerThatIsKilledIsElectedAnew(t *testing.T) {
	kafka := groupcoord.Start(t, groupcoord.Brokers(3), groupcoord.ManualClock())
	if state := kafka.Controller().Kill().State; state != "stopped" {
		t.Error(state)
	}
	kafka.Controller().Start()
	if seen := kafka.Controller().Describe(); seen.State != "running" || seen.Epoch != 2 {
		t.Error(seen)
	}
	if state := kafka.Controller().Pause().State; state != "paused" {
		t.Error(state)
	}
	kafka.Controller().Resume()
}

func TestABrokerThatIsKilledIsFencedAndComesBack(t *testing.T) {
	kafka := groupcoord.Start(t, groupcoord.Brokers(3), groupcoord.ManualClock())
	if kafka.Node(2).Kill().Fenced {
		t.Error("it is fenced before its session ends")
	}
	kafka.Advance(9 * time.Second)
	if state := kafka.Node(2).WaitFenced().State; state != "stopped" {
		t.Error(state)
	}
	kafka.Node(2).Start()
	if seen := kafka.Node(2).WaitRunning(); seen.State != "running" || seen.Fenced {
		t.Error(seen)
	}
	if seen := kafka.Node(2).SlowDisk(500 * time.Millisecond); seen.SlowDiskMs != 500 {
		t.Error(seen)
	}
	kafka.Node(2).SlowDisk(0)
	if seen := kafka.Node(2).CutOff("3"); seen.Condition != "running, cut off from broker 3" || seen.CutOffFrom[0] != "3" {
		t.Error(seen)
	}
}

func TestAResetIsACleanBroker(t *testing.T) {
	kafka := groupcoord.Start(t, groupcoord.Config("group.max.size", "3"))
	kafka.CreateTopic("later", 1, nil)
	if problems := kafka.Reset(); len(problems) > 0 || slices.Contains(kafka.Status().Topics, "later") {
		t.Error(problems, kafka.Status())
	}
	kafka.Stop()
	kafka.Restart()
	if kafka.Status().State != "up" {
		t.Error(kafka.Status())
	}
}

func TestBrokersHaveNothingInCommon(t *testing.T) {
	kafka := groupcoord.Start(t, groupcoord.Topic("orders", 1))
	other := kafka.NewBroker(groupcoord.Topic("orders", 1))
	other.Produce("orders", "only there")
	if kafka.Address == other.Address || len(kafka.Records("orders")) > 0 {
		t.Error(kafka.Address, kafka.Records("orders"))
	}
	if problems := other.End(); len(problems) > 0 {
		t.Error(problems)
	}
}

// observed is a test whose end and failures are observed.
type observed struct {
	testing.TB
	ends []func()
	said []string
}

func (o *observed) Helper()                           {}
func (o *observed) Cleanup(end func())                { o.ends = append(o.ends, end) }
func (o *observed) Failed() bool                      { return false }
func (o *observed) Log(arguments ...any)              {}
func (o *observed) Error(arguments ...any)            { o.said = append(o.said, fmt.Sprint(arguments...)) }
func (o *observed) Fatalf(text string, values ...any) { o.Error(fmt.Sprintf(text, values...)) }

func TestARuleThatNeverActedFailsTheTest(t *testing.T) {
	test := observed{TB: t}
	groupcoord.Start(&test).Drop("Heartbeat", groupcoord.Match{Group: "app"})
	for _, end := range test.ends {
		end()
	}
	if len(test.said) != 1 || !strings.HasPrefix(test.said[0], "rule 1 never acted: when(Heartbeat, group='app').drop()") {
		t.Error(test.said)
	}
}

func TestAFailureNamesTheLineOfTheTest(t *testing.T) {
	test := observed{TB: t}
	groupcoord.Start(&test).Advance(time.Second)
	if len(test.said) != 1 || !strings.HasPrefix(test.said[0], "groupcoord_test.go:") {
		t.Error(test.said)
	}
	test.ends[0]()
}

func TestARefusedFieldIsNamed(t *testing.T) {
	kafka := groupcoord.Start(t)
	defer func() {
		var refused *groupcoord.Error
		err, _ := recover().(error)
		if !errors.As(err, &refused) || refused.Status != 422 || strings.Count(err.Error(), "code: ") != 1 || len(refused.Fields) != 1 {
			t.Error(err)
		}
	}()
	groupcoord.Connect(kafka.URL(), os.Getenv("GROUPCOORD_CONTROL_TOKEN")).Refuse("Heartbeat", groupcoord.Match{}, "REBALANCE")
}
