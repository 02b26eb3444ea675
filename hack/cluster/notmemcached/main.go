// notmemcached takes the place of memcached in an image for tests of wrong images.
package main

import "fmt"

func main() {
	fmt.Println("hello from something else")
}
