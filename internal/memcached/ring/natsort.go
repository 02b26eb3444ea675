package ring

import (
	"cmp"
	"strconv"
)

// compareNatural orders names with numbers by the value of the numbers, so that cache-2
// precedes cache-10. It compares runs of digits and runs of other characters; a prefix
// of a name precedes the name.
func compareNatural(a, b string) int {
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

func cutRun(name string) (run, rest string) {
	end := 1
	for end < len(name) && isDigit(name[end]) == isDigit(name[0]) {
		end++
	}
	return name[:end], name[end:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
