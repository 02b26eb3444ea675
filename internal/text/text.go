// Package text formats numbers and messages for users.
package text

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// Percent returns a share with one decimal, such as 99.9%, never rounded up to 100%. It is 100% of
// nothing.
func Percent(part, of int64) string {
	if part >= of || of <= 0 {
		return "100%"
	}
	return fmt.Sprintf("%.1f%%", min(math.Floor(float64(max(part, 0))*1000/float64(of)), 999)/10)
}

// Thousands returns a number with its digits in groups of three, such as 30,000.
func Thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Truncate cuts a message to at most limit bytes, between runes, and marks the cut with an
// ellipsis.
func Truncate(message string, limit int) string {
	const ellipsis = "…"
	if len(message) <= limit {
		return message
	}
	cut := max(0, limit-len(ellipsis))
	for cut > 0 && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + ellipsis
}
