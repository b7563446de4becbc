package groupcoord

import (
	"fmt"
	"time"
)

// Match says which requests a rule matches; an empty field matches everything.
type Match struct {
	Group    string
	Member   string
	ClientID string
	Topic    string
	// Times is how often the rule acts: once unless said, and -1 is always.
	Times int
	// Optional says that the rule need not act.
	Optional bool
}

// Rule is a rule that was added to the broker.
type Rule struct {
	broker *Broker
	path   string
}

// Held is a request that a rule holds.
type Held struct {
	API      string `json:"api"`
	Version  int    `json:"version"`
	ClientID string `json:"client_id"`
}

type ruleState struct {
	ID      int    `json:"id"`
	Uses    int    `json:"uses"`
	Waiting []Held `json:"waiting"`
}

// Refuse answers requests of that API with an error; they are not handled.
func (b *Broker) Refuse(api string, match Match, code string) *Rule {
	return b.Fault(api, match, "refuse", map[string]any{"code": code})
}

// Drop neither handles nor answers requests of that API, as if they were lost.
func (b *Broker) Drop(api string, match Match) *Rule { return b.Fault(api, match, "drop", nil) }

// Delay handles requests of that API so much later, on the broker's clock.
func (b *Broker) Delay(api string, match Match, duration time.Duration) *Rule {
	return b.Fault(api, match, "delay", map[string]any{"ms": duration.Milliseconds()})
}

// Hold lets requests of that API wait until Release.
func (b *Broker) Hold(api string, match Match) *Rule { return b.Fault(api, match, "hold", nil) }

// Fault adds a rule with any action of docs/faults.md and its arguments; the API "any" is every one.
func (b *Broker) Fault(api string, match Match, action string, arguments map[string]any) *Rule {
	rule := map[string]any{"when": api, "do": action}
	for name, value := range map[string]string{
		"group": match.Group, "member": match.Member, "client_id": match.ClientID, "topic": match.Topic,
	} {
		if value != "" {
			rule[name] = value
		}
	}
	switch {
	case match.Times < 0:
		rule["times"] = "always"
	case match.Times > 0:
		rule["times"] = match.Times
	}
	if match.Optional {
		rule["optional"] = true
	}
	for name, value := range arguments {
		rule[name] = value
	}
	var made ruleState
	b.ask("POST", "/faults", rule, &made, 0)
	return &Rule{b, fmt.Sprint("/faults/", made.ID)}
}

// Uses is how often the rule has acted.
func (r *Rule) Uses() int { return r.state("").Uses }

// WaitActed waits until the rule has acted so often.
func (r *Rule) WaitActed(count int) { r.wait(fmt.Sprintf("acted=%d", count)) }

// WaitHeld waits until the rule has held so many requests, and returns those that wait now.
func (r *Rule) WaitHeld(count int) []Held { return r.wait(fmt.Sprintf("held=%d", count)).Waiting }

// Release lets all requests go on that the rule holds, in the order in which they came.
func (r *Rule) Release() { r.broker.ask("POST", r.path+"/release", map[string]any{}, nil, 0) }

// Remove removes the rule.
func (r *Rule) Remove() { r.broker.ask("DELETE", r.path, nil, nil, 0) }

func (r *Rule) wait(what string) (state ruleState) {
	path := fmt.Sprintf("%s/wait?%s&timeout=%dms", r.path, what, waitTimeout.Milliseconds())
	r.broker.ask("GET", path, nil, &state, waitTimeout)
	return state
}

func (r *Rule) state(suffix string) (state ruleState) {
	r.broker.ask("GET", r.path+suffix, nil, &state, 0)
	return state
}
