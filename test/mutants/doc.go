// Mutants checks the tests: it breaks the code in one place after the other, each
// time in a way that a person would call a bug, and runs the tests that are to
// notice. A mutant that every test passes is a hole in the tests, and ends the
// command with exit status 1.
//
// # The list
//
// The files in list/ hold the mutants, a file for an area. A mutant is a paragraph:
//
//	the gate that one shard at most is out is dropped
//	in controllers/memcached/rollout/next.go
//	tests ./controllers/memcached/rollout
//	tests ./controllers/memcached TestAnUpdateEndsTheSameWhereverTheOperatorIsKilled
//	-othersSettled, noneOut, timeBetween
//	+othersSettled, timeBetween
//
// Its name says which property is broken. "in" names the file, and "-" the text in
// it that "+" takes the place of; several lines of either are joined. That text is
// in the file exactly once: a mutant that does not fit the code any more is an
// error, and the unit tests of this package look at that without running anything.
// "tests" is a package, from the root of the repository, in the module of the
// operator or in that of test/, and perhaps names of tests in it. Lines that begin
// with # are comments.
//
// # A run
//
// First every mutant is compiled, as a test that fails on what is no Go proves nothing,
// and then the tests run on the code as it is, as a test that fails anyway proves
// nothing either. After that the tests of each mutant run, those first that took least
// time, until one fails. A test that hangs notices too, and the table says that it did
// so by hanging. The working tree is not touched: the go command is given the changed file as an overlay, by the
// environment, so that it holds for the programs which tests build as well.
package main
