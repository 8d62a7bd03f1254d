//go:build !linux

package host

import (
	"errors"
	"net/netip"
)

type diagnosis struct{}

func diagnose() (diagnosis, error) { return diagnosis{}, errors.ErrUnsupported }

func (diagnosis) close() {}

func (diagnosis) find(netip.AddrPort, *netip.AddrPort) *socket { return nil }
