// Package args parses memcached's command line as memcached does.
package args

import "strings"

// Option is an option of memcached, whether its name was given as a letter or a word.
type Option struct {
	Letter byte
	// Value is empty for an option without a value.
	Value string
}

// lettersWithValue are the options that take a value, from memcached's getopt string.
// Source: main in memcached.c.
const lettersWithValue = "apsUmclPfntDRbBIYeoNu"

var longOptions = map[string]byte{
	"unix-mask": 'a', "enable-shutdown": 'A', "enable-ssl": 'Z', "port": 'p', "unix-socket": 's', "udp-port": 'U',
	"memory-limit": 'm', "disable-evictions": 'M', "conn-limit": 'c', "lock-memory": 'k', "help": 'h', "license": 'i',
	"version": 'V', "enable-coredumps": 'r', "verbose": 'v', "daemon": 'd', "listen": 'l', "user": 'u', "pidfile": 'P',
	"slab-growth-factor": 'f', "slab-min-size": 'n', "threads": 't', "enable-largepages": 'L', "max-reqs-per-event": 'R',
	"disable-cas": 'C', "listen-backlog": 'b', "protocol": 'B', "max-item-size": 'I', "enable-sasl": 'S',
	"disable-flush-all": 'F', "disable-dumping": 'X', "disable-watch": 'W', "auth-file": 'Y', "memory-file": 'e',
	"extended": 'o', "napi-ids": 'N',
}

// Options parses arguments like getopt_long: -m 64, -m64, -vm64, --memory-limit=64,
// --memory-limit 64 and an unambiguous abbreviation of a long name are equivalent. It
// skips unknown options, which memcached rejects.
func Options(words []string) []Option {
	var options []Option
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		switch {
		case word == "--":
			return options
		case strings.HasPrefix(word, "--"):
			name, value, hasValue := strings.Cut(word[2:], "=")
			letter := longOption(name)
			if letter == 0 {
				continue
			}
			if !hasValue && takesValue(letter) && len(words) > 0 {
				value, words = words[0], words[1:]
			}
			options = append(options, Option{letter, value})
		case len(word) > 1 && word[0] == '-':
			for i := 1; i < len(word); i++ {
				letter := word[i]
				if !takesValue(letter) {
					options = append(options, Option{Letter: letter})
					continue
				}
				value := word[i+1:]
				if value == "" && len(words) > 0 {
					value, words = words[0], words[1:]
				}
				options = append(options, Option{letter, value})
				break
			}
		}
	}
	// memcached ignores spaces before a value.
	for i := range options {
		options[i].Value = strings.TrimLeft(options[i].Value, " \t\n\v\f\r")
	}
	return options
}

func takesValue(letter byte) bool { return strings.IndexByte(lettersWithValue, letter) >= 0 }

func longOption(name string) byte {
	if letter, ok := longOptions[name]; ok {
		return letter
	}
	var found byte
	for long, letter := range longOptions {
		if strings.HasPrefix(long, name) {
			if found != 0 {
				return 0
			}
			found = letter
		}
	}
	return found
}

// Suboptions splits the value of -o into pairs of name and value.
func Suboptions(value string) [][2]string {
	var pairs [][2]string
	for _, word := range strings.Split(value, ",") {
		name, value, _ := strings.Cut(word, "=")
		pairs = append(pairs, [2]string{name, value})
	}
	return pairs
}

// Number parses a number like C's atoi: up to the first byte that is not a digit.
func Number(text string) int64 {
	sign := int64(1)
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = -1, rest
	} else {
		text = strings.TrimPrefix(text, "+")
	}
	var n int64
	for i := 0; i < len(text) && text[i] >= '0' && text[i] <= '9' && n < 1<<40; i++ {
		n = n*10 + int64(text[i]-'0')
	}
	return sign * n
}

// Bytes returns the number that a text begins with, in the unit that it ends with, as memcached reads the largest item size.
func Bytes(text string) int64 {
	switch {
	case strings.HasSuffix(text, "k"), strings.HasSuffix(text, "K"):
		return Number(text) << 10
	case strings.HasSuffix(text, "m"), strings.HasSuffix(text, "M"):
		return Number(text) << 20
	}
	return Number(text)
}
