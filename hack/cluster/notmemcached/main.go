// notmemcached stands where images keep memcached and is something else. The
// tests use it to see what becomes of an image that is not memcached.
package main

import "fmt"

func main() {
	fmt.Println("hello from something else")
}
