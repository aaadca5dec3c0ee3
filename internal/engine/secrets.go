package engine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/wyegate/wyegate/config"
	"github.com/wyegate/wyegate/internal/statedir"
	"github.com/wyegate/wyegate/proxy"
)

// loadSecrets reads the secrets that tokens and branches are made with: cluster.secret_file, else the one that this node
// made at its first start (sip-http.md 6.2). They are read anew for each generation: a reload rotates them.
func (e *Engine) loadSecrets(cfg *config.Config) (*proxy.Secrets, error) {
	path := cfg.Cluster.SecretFile.Abs
	if path == "" {
		secret, err := e.state.secret()
		if err != nil {
			return nil, err
		}
		return proxy.NewSecrets([]proxy.Secret{{Number: 0, Bytes: secret}})
	}
	data, err := fs.ReadFile(disk{regular: true}, strings.TrimPrefix(path, "/"))
	if err != nil {
		return nil, fmt.Errorf("engine: secret file: %w", err)
	}
	list, err := ParseSecrets(data)
	if err != nil {
		return nil, fmt.Errorf("engine: %s: %w", path, err)
	}
	return proxy.NewSecrets(list)
}

// minSecret is the fewest octets a secret may have.
const minSecret = 16

// ParseSecrets reads numbered lines: a number from 0 to 15, white space or a colon, the secret as it is written. Empty
// lines and lines with # do not count. The first writes, all read.
func ParseSecrets(data []byte) ([]proxy.Secret, error) {
	var out []proxy.Secret
	sc := bufio.NewScanner(bytes.NewReader(data))
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		number, secret, ok := strings.Cut(text, ":")
		if !ok {
			number, secret, ok = strings.Cut(text, " ")
		}
		n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 4)
		secret = strings.TrimSpace(secret)
		if !ok || err != nil {
			return nil, fmt.Errorf("line %d: a number from 0 to 15 and a secret expected", line)
		}
		if len(secret) < minSecret {
			return nil, fmt.Errorf("line %d: a secret has at least %d characters", line, minSecret)
		}
		out = append(out, proxy.Secret{Number: uint8(n), Bytes: []byte(secret)})
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errors.New("no secret in it")
	}
	return out, nil
}

// SecretsFor gives the secrets that explain opens tokens with, offline: the file's, else those of the state folder,
// else made-up ones, with which every token counts as none.
func SecretsFor(cfg *config.Config) *proxy.Secrets {
	if path := cfg.Cluster.SecretFile.Abs; path != "" {
		if data, err := os.ReadFile(path); err == nil {
			if list, err := ParseSecrets(data); err == nil {
				if s, err := proxy.NewSecrets(list); err == nil {
					return s
				}
			}
		}
	}
	secret, err := statedir.PeekSecret(cfg.Node.StateDir.Abs)
	if err != nil {
		secret = []byte("no secret is known here")
	}
	s, err := proxy.NewSecrets([]proxy.Secret{{Number: 0, Bytes: secret}})
	if err != nil {
		return nil
	}
	return s
}
