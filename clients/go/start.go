package groupcoord

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Option says how a broker is made.
type Option func(settings map[string]any)

// Topic is a topic to begin with.
func Topic(name string, partitions int) Option {
	return func(settings map[string]any) { settings["topics"].(map[string]int)[name] = partitions }
}

// ManualClock lets the test move the time, with Advance.
func ManualClock() Option {
	return func(settings map[string]any) { settings["clock"] = "manual" }
}

// Brokers makes a cluster of so many brokers.
func Brokers(number int) Option {
	return func(settings map[string]any) { settings["brokers"] = number }
}

// Config sets a property of a Kafka broker.
func Config(name, value string) Option {
	return func(settings map[string]any) { settings["config"].(map[string]string)[name] = value }
}

var process struct {
	sync.Mutex
	url string
}

// Start gives a test a broker of its own, which ends with the test. The test fails if something went wrong in the broker or if a
// rule never acted, and a failed test shows what happened on its broker.
//
// All tests of a program share one process: the one at GROUPCOORD_CONTROL_URL (with GROUPCOORD_CONTROL_TOKEN, if it wants one), or
// one that is started with GROUPCOORD_COMMAND ("groupcoord" unless it is set) and ends with the program.
func Start(t testing.TB, options ...Option) *Broker {
	t.Helper()
	fail := func(problem error) {
		t.Helper()
		t.Fatalf("%s: %v", caller(), problem)
	}
	url, err := serverURL()
	if err != nil {
		t.Fatal(err)
	}
	broker := connected(url, os.Getenv("GROUPCOORD_CONTROL_TOKEN"), fail).NewBroker(options...)
	t.Cleanup(func() {
		report, failed := broker.Report(), t.Failed()
		problems := broker.End()
		if !failed {
			for _, problem := range problems {
				t.Error(problem)
			}
		}
		if failed || len(problems) > 0 {
			t.Log("what happened on the broker:\n" + report)
		}
	})
	return broker
}

// caller is the line of the test that called this package.
func caller() string {
	var counters [64]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters[:])])
	own, more := frames.Next()
	frame := own
	for more && path.Dir(frame.File) == path.Dir(own.File) && !strings.HasSuffix(frame.File, "_test.go") {
		frame, more = frames.Next()
	}
	return fmt.Sprintf("%s:%d", path.Base(frame.File), frame.Line)
}

func serverURL() (string, error) {
	process.Lock()
	defer process.Unlock()
	if process.url == "" {
		process.url = os.Getenv("GROUPCOORD_CONTROL_URL")
	}
	if process.url != "" {
		return process.url, nil
	}
	words := strings.Fields(firstOf(os.Getenv("GROUPCOORD_COMMAND"), "groupcoord"))
	words = append(words, "serve", "--port", "0", "--control", "127.0.0.1:0", "--quiet", "--until-stdin-ends")
	command := exec.Command(words[0], words[1:]...)
	command.Stderr = os.Stderr
	command.Env = slices.DeleteFunc(os.Environ(), func(each string) bool { return strings.HasPrefix(each, "GROUPCOORD_") })
	// The server ends when its standard input does, and that does when this program ends, however it ends.
	if _, err := command.StdinPipe(); err != nil {
		return "", err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("%w: put groupcoord on the PATH, or say how to start it in GROUPCOORD_COMMAND", err)
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if url, found := strings.CutPrefix(lines.Text(), "control listening on "); found {
			process.url = url
			return url, nil
		}
	}
	return "", fmt.Errorf("%s has ended before it listened: %w", words[0], command.Wait())
}
