package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// certificate returns the key and self-signed certificate, in PEM, of a host named node, valid for
// a day unless change alters it.
func certificate(t testing.TB, change func(*x509.Certificate)) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "node"}, DNSNames: []string{"node"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	if change != nil {
		change(of)
	}
	certificate, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: certificate}, {Type: "PRIVATE KEY", Bytes: private}} {
		if err := pem.Encode(&text, block); err != nil {
			t.Fatal(err)
		}
	}
	return text.Bytes()
}
