package e2e

import (
	"net"
	"strings"
	"sync"
	"testing"
)

// gate forwards the connections of one test to the API server, like a network that fails in the
// ways a test requests.
type gate struct {
	url      string // https://127.0.0.1:PORT
	target   string
	listener net.Listener

	mu       sync.Mutex
	changed  *sync.Cond
	hanging  bool
	refusing bool
	closed   bool
	conns    map[net.Conn]bool // true if stranded
	held     int               // reads held back
}

// gate opens a gate to the API server for this test.
func (c *cluster) gate(t *testing.T) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{url: "https://" + l.Addr().String(), target: strings.TrimPrefix(c.url, "https://"), listener: l, conns: map[net.Conn]bool{}}
	g.changed = sync.NewCond(&g.mu)
	go g.serve()
	t.Cleanup(g.close)
	return g
}

// hang holds back every byte from now on, in both directions: connections are accepted and stay
// open.
func (g *gate) hang() { g.set(func() { g.hanging = true }) }

// strand permanently and silently holds back every byte of existing connections, like a firewall
// that forgets them. New ones pass.
func (g *gate) strand() {
	g.set(func() {
		for conn := range g.conns {
			g.conns[conn] = true
		}
	})
}

// refuse closes each new connection at once. Existing ones stay: see cut.
func (g *gate) refuse() { g.set(func() { g.refusing = true }) }

// heal undoes hang and refuse; the bytes held back arrive.
func (g *gate) heal() { g.set(func() { g.hanging, g.refusing = false, false }) }

// cut closes all connections; bytes held back are lost.
func (g *gate) cut() {
	g.set(func() {
		for conn := range g.conns {
			conn.Close()
		}
	})
}

// holds reports whether bytes are held back.
func (g *gate) holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held > 0
}

func (g *gate) close() {
	g.listener.Close()
	g.set(func() { g.closed = true })
	g.cut()
}

func (g *gate) set(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	g.changed.Broadcast()
}

func (g *gate) serve() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", g.target)
		if err != nil || !g.admit(client, server) {
			client.Close()
			if server != nil {
				server.Close()
			}
			continue
		}
		go g.pass(client, server)
		go g.pass(server, client)
	}
}

// admit registers both halves of a connection, unless connections are refused.
func (g *gate) admit(client, server net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusing || g.closed {
		return false
	}
	g.conns[client], g.conns[server] = false, false
	return true
}

// hold waits while the gate hangs or from is stranded.
func (g *gate) hold(from net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held++
	for (g.hanging || g.conns[from]) && !g.closed {
		g.changed.Wait()
	}
	g.held--
}

// pass copies bytes in one direction until either end closes, and then closes both.
func (g *gate) pass(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			g.hold(from)
		}
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			break
		}
	}
	from.Close()
	to.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, from)
	delete(g.conns, to)
}
