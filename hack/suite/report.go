package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// junit writes the results of a tier in the format of JUnit.
func junit(path, name string, passed, failed []*outcome, took time.Duration) error {
	type testcase struct {
		Package string  `xml:"classname,attr"`
		Name    string  `xml:"name,attr"`
		Seconds float64 `xml:"time,attr"`
		Failure *string `xml:"failure"`
	}
	suite := struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Seconds  float64    `xml:"time,attr"`
		Cases    []testcase `xml:"testcase"`
	}{Name: name, Tests: len(passed) + len(failed), Failures: len(failed), Seconds: took.Seconds()}
	for _, o := range passed {
		suite.Cases = append(suite.Cases, testcase{o.pkg, o.test, o.elapsed.Seconds(), nil})
	}
	for _, o := range failed {
		output := tail(o.output.String())
		suite.Cases = append(suite.Cases, testcase{o.pkg, o.test, o.elapsed.Seconds(), &output})
	}
	content, err := xml.MarshalIndent(suite, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append([]byte(xml.Header), content...), 0o644)
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
	return os.WriteFile(path, append(content, '\n'), 0o644)
}
