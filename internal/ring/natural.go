package ring

import (
	"cmp"
	"strconv"
)

// compareNaturally orders names with their numbers by value, so that cache-2 comes
// before cache-10. Names are compared run by run, where a run is of digits or of
// none; of two names of which one begins the other, the shorter comes first.
func compareNaturally(a, b string) int {
	for a != "" && b != "" {
		var runA, runB string
		runA, a = cutRun(a)
		runB, b = cutRun(b)
		if order := compareRuns(runA, runB); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareRuns(a, b string) int {
	numberA, errA := strconv.Atoi(a)
	numberB, errB := strconv.Atoi(b)
	if errA == nil && errB == nil {
		return cmp.Compare(numberA, numberB)
	}
	return cmp.Compare(a, b)
}

// cutRun cuts the first run off a name that is not empty.
func cutRun(name string) (run, rest string) {
	end := 1
	for end < len(name) && isDigit(name[end]) == isDigit(name[0]) {
		end++
	}
	return name[:end], name[end:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
