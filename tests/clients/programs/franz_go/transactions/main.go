// Transactions by franz-go. What it is told and what it says: tests/clients/program_transactions.py.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	bootstrap = os.Args[1]
	living    = context.Background()
	producers = map[string]*kgo.Client{}
	sessions  = map[string]*kgo.GroupTransactSession{}
)

func open(name string, words []string) error {
	timeoutMs, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.TransactionalID(words[0]),
		kgo.TransactionTimeout(time.Duration(timeoutMs) * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
	if len(words) == 2 {
		producers[name], err = kgo.NewClient(options...)
	} else {
		options = append(options, reading("read_committed")...)
		options = append(options, kgo.ConsumerGroup(words[2]), kgo.ConsumeTopics(words[3]))
		options = append(options, kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(100*time.Millisecond))
		if sessions[name], err = kgo.NewGroupTransactSession(options...); err == nil {
			producers[name] = sessions[name].Client()
		}
	}
	if err == nil {
		_, _, err = producers[name].ProducerID(living)
	}
	return err
}

func transform(session *kgo.GroupTransactSession, target string, count int, how string) error {
	if err := session.Begin(); err != nil {
		return err
	}
	for done := 0; done < count; {
		fetches := session.PollFetches(living)
		var left *kgo.ErrGroupSession // it joins again, when the server is back
		if err := fetches.Err(); err != nil && !errors.As(err, &left) {
			return err
		}
		var transformed []*kgo.Record
		fetches.EachRecord(func(record *kgo.Record) {
			value := []byte(strings.ToUpper(string(record.Value)))
			transformed = append(transformed, &kgo.Record{Topic: target, Value: value})
		})
		if err := session.ProduceSync(living, transformed...).FirstErr(); err != nil {
			return err
		}
		done += len(transformed)
	}
	if how == "leave" {
		return nil
	}
	committed, err := session.End(living, kgo.TransactionEndTry(how == "commit"))
	if err == nil && how == "commit" && !committed {
		return transform(session, target, count, how) // somebody else may have had the partitions: they come again
	}
	return err
}

func reading(isolation string) []kgo.Opt {
	level := kgo.ReadUncommitted()
	if isolation == "read_committed" {
		level = kgo.ReadCommitted()
	}
	return []kgo.Opt{
		kgo.FetchIsolationLevel(level),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100 * time.Millisecond),
	}
}

func read(isolation, topic, last string) (string, error) {
	client, err := kgo.NewClient(append(reading(isolation), kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic))...)
	if err != nil {
		return "", err
	}
	defer client.Close()
	found := ""
	for !strings.HasSuffix(found, " "+last) {
		fetches := client.PollFetches(living)
		if err := fetches.Err(); err != nil {
			return "", err
		}
		fetches.EachRecord(func(record *kgo.Record) { found += " " + string(record.Value) })
	}
	return found, nil
}

func answer(name, verb string, words []string) (string, error) {
	producer := producers[name]
	switch verb {
	case "open":
		return "", open(name, words)
	case "begin":
		return "", producer.BeginTransaction()
	case "send":
		return "", producer.ProduceSync(living, &kgo.Record{Topic: words[0], Value: []byte(words[1])}).FirstErr()
	case "commit":
		return "", producer.EndTransaction(living, kgo.TryCommit)
	case "abort":
		return "", producer.EndTransaction(living, kgo.TryAbort)
	case "transform":
		count, err := strconv.Atoi(words[1])
		if err != nil {
			return "", err
		}
		return "", transform(sessions[name], words[0], count, words[2])
	case "read":
		return read(words[0], words[1], words[2])
	}
	return "", errors.New("unknown " + verb)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		found, err := answer(words[0], words[1], words[2:])
		var known *kerr.Error
		switch {
		case err == nil:
			fmt.Printf("%s ok%s\n", words[0], found)
		case errors.As(err, &known):
			fmt.Println(words[0], "failed", known.Message)
		default:
			fmt.Println(words[0], "failed", strings.ReplaceAll(err.Error(), " ", "-"))
		}
	}
}
