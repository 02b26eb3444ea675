package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// junit writes the results of a tier in the format of JUnit.
func (r *results) junit(path, name string, v verdict, took time.Duration) error {
	type failure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
	type testcase struct {
		Package string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Seconds float64  `xml:"time,attr"`
		Failure *failure `xml:"failure,omitempty"`
	}
	type testsuite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Seconds  float64    `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`
	}
	s := testsuite{Name: name, Seconds: took.Seconds()}
	add := func(ids []testID, failed bool) {
		for _, id := range ids {
			o := r.outcomes[id]
			c := testcase{Package: id.pkg, Name: id.test, Seconds: o.elapsed.Seconds()}
			if failed {
				c.Failure = &failure{Message: "failed", Text: tail(o.output.String())}
				s.Failures++
			}
			s.Tests++
			s.Cases = append(s.Cases, c)
		}
	}
	add(v.passed, false)
	add(v.failed, true)
	add(v.broken, true)
	content, err := xml.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return write(path, append([]byte(xml.Header), content...))
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// flake is a test that failed in a run and passed when it was repeated: a fault without an owner yet.
type flake struct {
	Time    time.Time `json:"time"`
	Commit  string    `json:"commit"`
	Tier    string    `json:"tier"`
	Package string    `json:"package"`
	Test    string    `json:"test"`
	Output  string    `json:"output"`
}

// record adds flakes to the file of those of all runs.
func record(path string, more []flake) error {
	flakes := []flake{}
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &flakes)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the recorded flakes: %w", err)
	}
	if content, err = json.MarshalIndent(append(flakes, more...), "", "  "); err != nil {
		return err
	}
	return write(path, append(content, '\n'))
}
