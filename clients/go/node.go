package groupcoord

import (
	"fmt"
	"net/url"
	"time"
)

// NodeState is the state of a broker of a cluster: State is "running", "paused", "stopped" or "starting".
type NodeState struct {
	ID      int    `json:"id"`
	Address string `json:"address"`
	Rack    string `json:"rack"`
	State   string `json:"state"`
	Fenced  bool   `json:"fenced"`
	// Registered: the controller knows it, fenced or not.
	Registered bool `json:"registered"`
	// CutOffFrom are the ids of other brokers, "clients" and "controller".
	CutOffFrom  []string `json:"cut_off_from"`
	Replicating bool     `json:"replicating"`
	// SlowDiskMs is the delay of each of its appends; 0: none.
	SlowDiskMs int  `json:"slow_disk_ms"`
	LostDisk   bool `json:"lost_disk"`
	// Condition is the state and the faults in words.
	Condition string `json:"condition"`
}

// ControllerState is the state of the controller of a cluster: State is "running", "paused" or "stopped".
type ControllerState struct {
	ID    int    `json:"id"`
	State string `json:"state"`
	Epoch int    `json:"epoch"`
}

// Controller is the controller of a cluster: while it is down, requests that need it wait, and all others are served.
type Controller struct {
	broker *Broker
}

// Controller is the controller of this cluster of several brokers: to kill, pause and start it.
func (b *Broker) Controller() *Controller { return &Controller{b} }

// Describe is the controller's state, and the epoch in which it was elected.
func (c *Controller) Describe() (seen ControllerState) {
	c.broker.ask("GET", "/controller", nil, &seen, 0)
	return seen
}

// Kill kills the controller.
func (c *Controller) Kill() ControllerState { return c.act("kill") }

// Start starts it again after Kill, in the next epoch.
func (c *Controller) Start() ControllerState { return c.act("start") }

// Pause suspends the controller until Resume.
func (c *Controller) Pause() ControllerState { return c.act("pause") }

// Resume ends a Pause.
func (c *Controller) Resume() ControllerState { return c.act("resume") }

func (c *Controller) act(verb string) (seen ControllerState) {
	c.broker.ask("POST", "/controller/"+verb, nil, &seen, 0)
	return seen
}

// Node is one broker of a cluster; when it is fenced, others become leaders of its partitions.
type Node struct {
	broker *Broker
	path   string
}

// Node is the broker with that id of this cluster: to stop, kill, pause and start it.
func (b *Broker) Node(id int) *Node { return &Node{b, fmt.Sprintf("/nodes/%d", id)} }

// Describe is the broker's state.
func (n *Node) Describe() (seen NodeState) {
	n.broker.ask("GET", n.path, nil, &seen, 0)
	return seen
}

// Stop shuts the broker down cleanly: others become leaders of its partitions.
func (n *Node) Stop() NodeState { return n.act("stop") }

// Kill kills the broker: it is fenced when its session expires.
func (n *Node) Kill() NodeState { return n.act("kill") }

// Pause suspends the broker until Resume; its connections stay open.
func (n *Node) Pause() NodeState { return n.act("pause") }

// Resume ends a Pause.
func (n *Node) Resume() NodeState { return n.act("resume") }

// Start starts the broker again; after Kill it has to wait until its old session has expired.
func (n *Node) Start() NodeState { return n.act("start") }

// PauseReplication pauses the broker's replication from leaders until ResumeReplication.
func (n *Node) PauseReplication() NodeState { return n.act("pause-replication") }

// ResumeReplication resumes the broker's replication from leaders.
func (n *Node) ResumeReplication() NodeState { return n.act("resume-replication") }

// CutOff cuts the network between the broker and a peer: the id of another broker, "clients" or "controller".
func (n *Node) CutOff(peer string) NodeState { return n.act("cut-off?peer=" + url.QueryEscape(peer)) }

// Reconnect ends a CutOff.
func (n *Node) Reconnect(peer string) NodeState {
	return n.act("reconnect?peer=" + url.QueryEscape(peer))
}

// SlowDisk delays each append of the broker by so long on the clock of the cluster; 0 ends that.
func (n *Node) SlowDisk(each time.Duration) NodeState {
	return n.act(fmt.Sprintf("slow-disk?seconds=%g", each.Seconds()))
}

// LoseDisk deletes the data of the broker, while it is stopped or killed.
func (n *Node) LoseDisk() NodeState { return n.act("lose-disk") }

// Unregister unregisters the broker at the controller.
func (n *Node) Unregister() NodeState { return n.act("unregister") }

// WaitFenced waits until the controller has fenced it.
func (n *Node) WaitFenced() NodeState { return n.wait("fenced") }

// WaitRunning waits until it runs.
func (n *Node) WaitRunning() NodeState { return n.wait("running") }

func (n *Node) act(verb string) (seen NodeState) {
	n.broker.ask("POST", n.path+"/"+verb, nil, &seen, 0)
	return seen
}

func (n *Node) wait(condition string) (seen NodeState) {
	path := fmt.Sprintf("%s/wait?%s=true&timeout=%dms", n.path, condition, waitTimeout.Milliseconds())
	n.broker.ask("GET", path, nil, &seen, waitTimeout)
	return seen
}
