// Package runtimetest has a host for tests of programs, and checks that hold for each kind of them.
//
// Its Host keeps the output of a program, and leaves questions and approvals to the test. It is for tests only.
package runtimetest
