// A member of a group by franz-go. What it is told and what it says: tests/clients/program_members.py.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var saying sync.Mutex

func say(words ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(words...)
}

func sayPartitions(what string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		var names []string
		for topic, numbers := range partitions {
			for _, number := range numbers {
				names = append(names, fmt.Sprintf("%s:%d", topic, number))
			}
		}
		sort.Strings(names)
		say(what, strings.Join(names, " "))
	}
}

func main() {
	told := map[string]string{}
	for _, argument := range os.Args[1:] {
		name, value, _ := strings.Cut(argument, "=")
		told[name] = value
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(told["bootstrap"]),
		kgo.ConsumerGroup(told["group"]),
		kgo.ClientID(told["client"]),
		kgo.ConsumeTopics(told["topic"]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.AutoCommitInterval(100 * time.Millisecond),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.OnPartitionsAssigned(sayPartitions("assigned")),
		kgo.OnPartitionsRevoked(sayPartitions("revoked")),
		kgo.OnPartitionsLost(sayPartitions("revoked")),
	}
	if told["instance"] != "" {
		options = append(options, kgo.InstanceID(told["instance"]))
	}
	if strings.HasPrefix(told["topic"], "^") {
		options = append(options, kgo.ConsumeRegex())
	}
	if told["protocol"] == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	} else {
		options = append(options, kgo.Balancers(kgo.RangeBalancer()), kgo.HeartbeatInterval(100*time.Millisecond))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		say("failed", err)
		os.Exit(1)
	}
	living, end := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		end()
	}()
	for living.Err() == nil {
		fetches := client.PollFetches(living)
		fetches.EachRecord(func(record *kgo.Record) {
			say("read", fmt.Sprintf("%s:%d:%d", record.Topic, record.Partition, record.Offset))
		})
		fetches.EachError(func(_ string, _ int32, err error) {
			if living.Err() == nil {
				say("failed", strings.ReplaceAll(err.Error(), "\n", " "))
			}
		})
	}
	client.Close()
	say("closed")
}
