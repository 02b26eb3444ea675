package args

import (
	"slices"
	"strings"
	"testing"
)

func TestOptionsAreParsedLikeGetoptLong(t *testing.T) {
	m64 := []Option{{'m', "64"}}
	for name, c := range map[string]struct {
		words []string
		want  []Option
	}{
		"no words":                            {nil, nil},
		"a separate value":                    {[]string{"-m", "64"}, m64},
		"a value in the same word":            {[]string{"-m64"}, m64},
		"a long name and =":                   {[]string{"--memory-limit=64"}, m64},
		"a long name and a separate value":    {[]string{"--memory-limit", "64"}, m64},
		"an abbreviated long name":            {[]string{"--memory-l=64"}, m64},
		"an ambiguous long name":              {[]string{"--memory=64"}, nil},
		"letters without a value, then one":   {[]string{"-vvm", "64"}, []Option{{'v', ""}, {'v', ""}, {'m', "64"}}},
		"a value that looks like an option":   {[]string{"-m", "-v"}, []Option{{'m', "-v"}}},
		"spaces before a value":               {[]string{"-m", "  64"}, m64},
		"a missing value":                     {[]string{"-m"}, []Option{{'m', ""}}},
		"a long option without a value":       {[]string{"--disable-cas", "-m", "64"}, []Option{{'C', ""}, {'m', "64"}}},
		"another long option without a value": {[]string{"--verbose", "-m", "64"}, []Option{{'v', ""}, {'m', "64"}}},
		"words that are no options":           {[]string{"hello", "-m", "64", "-"}, m64},
		"nothing after --":                    {[]string{"-m", "64", "--", "-C"}, m64},
		"an unknown long name":                {[]string{"--nonsense=1", "-m", "64"}, m64},
		"-o and its value":                    {[]string{"-o", "modern,ext_path=/x:1m"}, []Option{{'o', "modern,ext_path=/x:1m"}}},
		"the same option twice":               {[]string{"-m", "32", "-m64"}, []Option{{'m', "32"}, {'m', "64"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Options(c.words); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestNumbersAreParsedLikeAtoi(t *testing.T) {
	for text, want := range map[string]int64{"64": 64, "64mb": 64, "": 0, "x": 0, "-5": -5, "+7": 7, "0128": 128} {
		if got := Number(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func FuzzOptions(f *testing.F) {
	f.Add("-m", "64", "-vvC")
	f.Add("--memory-limit=64", "-o", "slab_sizes=1-2,no_modern")
	f.Add("--", "-I1m", "-")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		words := []string{a, b, c}
		if strings.ContainsRune(a+b+c, 0) {
			return // no argument of a program contains one
		}
		for _, option := range Options(words) {
			if option.Letter == 0 {
				t.Errorf("an option without a letter in %q", words)
			}
		}
	})
}
