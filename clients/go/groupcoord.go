// Package groupcoord controls a Kafka broker for tests, whose time, faults and groups are in the test's hands.
//
// It talks to the control interface of `groupcoord serve --control`, described in docs/control.md. Start gives a test a broker of
// its own:
//
//	kafka := groupcoord.Start(t, groupcoord.Topic("orders", 6), groupcoord.ManualClock())
//	kafka.Group("app").WaitStable(2)
//	kafka.Advance(46 * time.Second)
//
// Methods of a broker that was started for a test fail the test if the server refuses something; Connect gives one whose errors
// panic with *Error.
package groupcoord

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// patience is for a server that says nothing; a wait ends by itself and says why.
const patience = time.Minute

// waitTimeout is how long waits wait.
const waitTimeout = 30 * time.Second

// Broker is one broker, or a cluster of several.
type Broker struct {
	// Address is host:port, the bootstrap server for clients.
	Address string

	server string
	base   string
	token  string
	fail   func(error)
	http   *http.Client
}

// Error says that the server refused a request, or that a wait timed out (RFC 9457).
type Error struct {
	// Status is the HTTP status: 422 for a wrong field, 409 if the broker refuses the request, 504 if a wait timed out.
	Status int
	Title  string `json:"title"`
	Detail string `json:"detail"`
	// Fields are the wrong fields of the request, which Detail names, too.
	Fields []struct {
		Field   string `json:"field"`
		Problem string `json:"problem"`
	} `json:"errors"`
	// Reasons say what a wait still waits for, and until when.
	Reasons []string `json:"reasons"`

	asked string
}

func (e *Error) Error() string {
	lines := []string{fmt.Sprintf("%s: %s", e.asked, firstOf(e.Detail, e.Title, fmt.Sprint("HTTP status ", e.Status)))}
	for _, reason := range e.Reasons {
		lines = append(lines, "  "+reason)
	}
	return strings.Join(lines, "\n")
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// Status is what a broker is: State is "up" or "stopped".
type Status struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	State   string   `json:"state"`
	Address string   `json:"address"`
	Topics  []string `json:"topics"`
}

// Record is a record of a topic.
type Record struct {
	Topic       string  `json:"topic"`
	Partition   int     `json:"partition"`
	Offset      int64   `json:"offset"`
	TimestampMs int64   `json:"timestamp_ms"`
	Key         *string `json:"key"`
	Value       *string `json:"value"`
	// ValueBase64 is the value where it is not text.
	ValueBase64 *string `json:"value_base64"`
}

// PartitionOffset is a partition of a topic with an offset, or a lag (nil where nothing is committed).
type PartitionOffset struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"`
	Lag       *int64 `json:"lag"`
}

// GroupDescription is what a group is now; Generation is of a classic group, Epoch of one of KIP-848.
type GroupDescription struct {
	Group      string   `json:"group"`
	Type       string   `json:"type"`
	State      string   `json:"state"`
	Generation int      `json:"generation"`
	Epoch      int      `json:"epoch"`
	Members    []Member `json:"members"`
}

// Member is a member of a group.
type Member struct {
	MemberID   string            `json:"member_id"`
	InstanceID string            `json:"instance_id"`
	ClientID   string            `json:"client_id"`
	Assigned   []PartitionOffset `json:"assigned"`
}

// Deadline is a pending timer, such as a session timeout.
type Deadline struct {
	AtMs      int64   `json:"at_ms"`
	InSeconds float64 `json:"in_seconds"`
	Kind      string  `json:"kind"`
	Group     string  `json:"group"`
	Member    string  `json:"member"`
}

// Connect is the first broker behind a URL such as http://127.0.0.1:9093; without a token, token is "".
func Connect(url, token string) *Broker {
	return connected(url, token, func(problem error) { panic(problem) })
}

func connected(url, token string, fail func(error)) *Broker {
	server := strings.TrimRight(url, "/")
	broker := &Broker{server: server, base: server, token: token, fail: fail, http: &http.Client{}}
	broker.Address = broker.Status().Address
	return broker
}

// URL is where the broker is controlled.
func (b *Broker) URL() string { return b.base }

// Status is what the broker is now.
func (b *Broker) Status() (status Status) {
	b.ask("GET", "/status", nil, &status, 0)
	return status
}

// NewBroker makes another broker in the same process, with a port of its own and nothing in common with this one.
func (b *Broker) NewBroker(options ...Option) *Broker {
	settings := map[string]any{"topics": map[string]int{}, "config": map[string]string{}}
	for _, option := range options {
		option(settings)
	}
	var made Status
	other := *b
	other.base = b.server
	other.ask("POST", "/brokers", settings, &made, 0)
	other.base, other.Address = b.server+"/brokers/"+url.PathEscape(made.Name), made.Address
	return &other
}

// End ends a broker that NewBroker made; it returns the unexpected errors of its server, and rules that never acted.
func (b *Broker) End() []string {
	return b.problems("DELETE", "")
}

// Reset replaces the broker by a fresh one at the same address, in milliseconds; it returns the same as End.
func (b *Broker) Reset() []string {
	return b.problems("POST", "/reset")
}

func (b *Broker) problems(method, path string) []string {
	var found struct {
		Problems []string `json:"problems"`
	}
	b.ask(method, path, nil, &found, 0)
	return found.Problems
}

// Stop stops the broker: it closes its ports and all connections, and keeps its logs.
func (b *Broker) Stop() { b.ask("POST", "/stop", nil, nil, 0) }

// Restart starts the broker again on the same ports; groups are loaded from the log.
func (b *Broker) Restart() { b.ask("POST", "/restart", nil, nil, 0) }

// CreateTopic creates a topic; configs may be nil.
func (b *Broker) CreateTopic(name string, partitions int, configs map[string]string) {
	body := map[string]any{"name": name, "partitions": partitions}
	if configs != nil {
		body["configs"] = configs
	}
	b.ask("POST", "/topics", body, nil, 0)
}

// DeleteTopic deletes a topic, and the offsets committed for it.
func (b *Broker) DeleteTopic(name string) {
	b.ask("DELETE", "/topics/"+url.PathEscape(name), nil, nil, 0)
}

// Produce writes records with these values to partition 0.
func (b *Broker) Produce(topic string, values ...string) {
	records := make([]map[string]any, 0, len(values))
	for _, value := range values {
		records = append(records, map[string]any{"value": value, "partition": 0})
	}
	b.ask("POST", "/topics/"+url.PathEscape(topic)+"/records", map[string]any{"records": records}, nil, 0)
}

// ProduceKeyed writes a record; the key chooses the partition, as Kafka's own clients choose it.
func (b *Broker) ProduceKeyed(topic, key, value string) {
	body := map[string]any{"records": []map[string]any{{"key": key, "value": value}}}
	b.ask("POST", "/topics/"+url.PathEscape(topic)+"/records", body, nil, 0)
}

// Records are the records of a topic that a read_committed consumer can read now.
func (b *Broker) Records(topic string) (records []Record) {
	b.ask("GET", "/topics/"+url.PathEscape(topic)+"/records", nil, &records, 0)
	return records
}

// Advance advances a manual clock: every timer that expires runs at its own time, in order, before this returns.
func (b *Broker) Advance(duration time.Duration) {
	b.ask("POST", "/clock/advance", map[string]any{"seconds": duration.Seconds()}, nil, 0)
}

// Deadlines are the pending timers, earliest first.
func (b *Broker) Deadlines() (deadlines []Deadline) {
	b.ask("GET", "/clock/deadlines", nil, &deadlines, 0)
	return deadlines
}

// Trace is the trace of everything that happened, one line for each entry, with its cause.
func (b *Broker) Trace() string { return b.text("/trace/text") }

// WhyGeneration is why that generation of a group began.
func (b *Broker) WhyGeneration(group string, generation int) string {
	return b.text(fmt.Sprintf("/trace/why?group=%s&generation=%d", url.QueryEscape(group), generation))
}

// WhyMember explains how a member of a group last joined, left or changed: by its member id, instance id or client id.
func (b *Broker) WhyMember(group, member string) string {
	return b.text(fmt.Sprintf("/trace/why?group=%s&member=%s", url.QueryEscape(group), url.QueryEscape(member)))
}

// Report is what a failed test shows: groups, what they wait for, rules that acted, and the end of the trace.
func (b *Broker) Report() string { return b.text("/report") }

// Group is the group of that name, whether it exists or not.
func (b *Broker) Group(name string) *Group {
	return &Group{b, "/groups/" + url.PathEscape(name)}
}

// Group is a group of a broker.
type Group struct {
	broker *Broker
	path   string
}

// Describe is the group as it is now; its state is Dead if there is none.
func (g *Group) Describe() (seen GroupDescription) {
	g.broker.ask("GET", g.path, nil, &seen, 0)
	return seen
}

// Offsets are all committed offsets.
func (g *Group) Offsets() (offsets []PartitionOffset) {
	g.broker.ask("GET", g.path+"/offsets", nil, &offsets, 0)
	return offsets
}

// Lag is the number of records after the committed offset of each partition.
func (g *Group) Lag() (lag []PartitionOffset) {
	g.broker.ask("GET", g.path+"/lag", nil, &lag, 0)
	return lag
}

// Commit commits an offset as an administrator does, for a group without members.
func (g *Group) Commit(topic string, partition int, offset int64) {
	offsets := []map[string]any{{"topic": topic, "partition": partition, "offset": offset}}
	g.broker.ask("PUT", g.path+"/offsets", map[string]any{"offsets": offsets}, nil, 0)
}

// WaitStable waits until the group is Stable with so many members.
func (g *Group) WaitStable(members int) GroupDescription {
	return g.wait(fmt.Sprintf("stable=%d", members))
}

// WaitEmpty waits until the group exists and has no members.
func (g *Group) WaitEmpty() GroupDescription { return g.wait("empty=true") }

// WaitGeneration waits for the beginning of that generation, or a later one.
func (g *Group) WaitGeneration(number int) GroupDescription {
	return g.wait(fmt.Sprintf("generation=%d", number))
}

// WaitCommitted waits until that offset, or a later one, is committed.
func (g *Group) WaitCommitted(topic string, partition int, offset int64) GroupDescription {
	return g.wait("committed=" + url.QueryEscape(fmt.Sprintf("%s:%d:%d", topic, partition, offset)))
}

func (g *Group) wait(what string) (seen GroupDescription) {
	path := fmt.Sprintf("%s/wait?%s&timeout=%dms", g.path, what, waitTimeout.Milliseconds())
	g.broker.ask("GET", path, nil, &seen, waitTimeout)
	return seen
}

// ExpireMember lets the session of a member time out now: by its member id, instance id or client id.
func (g *Group) ExpireMember(member string) { g.act("expire-member", map[string]any{"member": member}) }

// FenceMember fences a static member: another one takes over its instance id.
func (g *Group) FenceMember(instanceID string) {
	g.act("fence-member", map[string]any{"instance_id": instanceID})
}

// ForceRebalance forces a rebalance: the members have to join again.
func (g *Group) ForceRebalance(reason string) {
	g.act("force-rebalance", map[string]any{"reason": reason})
}

// MoveCoordinator moves the coordinator of this group to another broker.
func (g *Group) MoveCoordinator(to int) { g.act("move-coordinator", map[string]any{"to": to}) }

func (g *Group) act(what string, body any) { g.broker.ask("POST", g.path+"/"+what, body, nil, 0) }

func (b *Broker) text(path string) string {
	body, err := b.send("GET", path, nil, 0)
	if err != nil {
		b.fail(err)
	}
	return string(body)
}

func (b *Broker) ask(method, path string, body, answer any, wait time.Duration) {
	text, err := b.send(method, path, body, wait)
	if err == nil && answer != nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		b.fail(err)
	}
}

func (b *Broker) send(method, path string, body any, wait time.Duration) ([]byte, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, b.base+path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if b.token != "" {
		request.Header.Set("Authorization", "Bearer "+b.token)
	}
	client := *b.http
	client.Timeout = patience + wait
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode < 400 {
		return text, err
	}
	refused := &Error{Status: response.StatusCode, asked: method + " " + path}
	_ = json.Unmarshal(text, refused) // what is not a problem document has a status all the same
	return nil, refused
}
