package main

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"isthmus/adapters/mqtt"
)

func (v *validator) listeners() {
	binds := map[string]string{}
	protocols := map[string]string{}
	for _, name := range v.c.Listeners.Keys {
		l, path := v.c.Listeners.Values[name], "listeners."+name
		if name == "" || strings.Trim(name, nameLetters) != "" || strings.Contains(name, ".") {
			v.fault("listeners", "%q: a listener is named by letters, digits, _ and -", name)
			continue
		}
		v.oneOf(path+".protocol", l.Protocol, "mqtt", "pulsar", "rocketmq", "http")
		// Of mqtt too: a client id is unique on the whole node, and each listener knows only its own clients.
		if other, dup := protocols[l.Protocol]; dup {
			v.fault(path, "%s has a listener already: %s", l.Protocol, other)
		}
		protocols[l.Protocol] = name
		switch l.Transport {
		case "tcp":
		case "websocket":
			v.fault(path+".transport", "websocket is not supported yet")
		default:
			v.oneOf(path+".transport", l.Transport, "tcp", "websocket")
		}
		if l.GRPC != "" {
			v.fault(path+".grpc", "not supported yet")
		}
		v.bind(path+".bind", l.Bind, binds)
		switch {
		case l.Protocol == "rocketmq":
			v.bind(path+".broker", l.Broker, binds)
			if l.Advertise != "" {
				v.hostPort(path+".advertise", l.Advertise)
			} else if host, _, err := net.SplitHostPort(l.Broker); err == nil && unspecified(host) {
				v.fault(path+".advertise", "missing: clients cannot connect to %s; write the host and port they shall use", l.Broker)
			}
		case l.Broker != "":
			v.fault(path+".broker", "belongs to rocketmq")
		}
		v.advertise(path, &l)
		switch {
		case l.V311Shared == "":
		case l.Protocol != "mqtt":
			v.fault(path+".v311_shared", "belongs to mqtt")
		default:
			v.oneOf(path+".v311_shared", l.V311Shared, mqtt.V311SharedDisconnect, mqtt.V311SharedRefuse, mqtt.V311SharedAllow)
		}
	}
}

func (v *validator) advertise(path string, l *ListenerConfig) {
	path += ".advertise"
	switch {
	case l.Protocol == "pulsar" && l.Advertise != "":
		if u, err := url.Parse(l.Advertise); err != nil || u.Scheme != "pulsar" || u.Port() == "" || u.Hostname() == "" || u.Path != "" {
			v.fault(path, "%q: want pulsar://host:port", l.Advertise)
		}
	case l.Protocol == "pulsar":
		if host, _, err := net.SplitHostPort(l.Bind); err == nil && unspecified(host) {
			v.fault(path, "missing: clients cannot connect to %s; write the pulsar://host:port they shall use", l.Bind)
		}
	case l.Protocol != "rocketmq" && l.Advertise != "":
		v.fault(path, "belongs to pulsar and rocketmq")
	}
}

func unspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

func (v *validator) hostPort(path, addr string) (host string, ok bool) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		v.fault(path, "%q: want host:port", addr)
		return "", false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		v.fault(path, "%q: %q is no port", addr, port)
		return "", false
	}
	return host, true
}

// bind checks an address to listen on. Without authentication it has to be on loopback, unless that was written down.
func (v *validator) bind(path, addr string, seen map[string]string) {
	if addr == "" {
		v.fault(path, "empty")
		return
	}
	host, ok := v.hostPort(path, addr)
	if !ok {
		return
	}
	if other, dup := seen[addr]; dup && !strings.HasSuffix(addr, ":0") {
		v.fault(path, "%s is taken by %s", addr, other)
	}
	seen[addr] = path
	ip, err := netip.ParseAddr(host)
	loopback := host == "localhost" || err == nil && ip.IsLoopback()
	if !loopback && (v.c.Auth == nil || !v.c.Auth.Anonymous) {
		v.fault(path, "%s is not on loopback and nobody is asked who he is: write auth: {anonymous: true} if that is meant", addr)
	}
}
