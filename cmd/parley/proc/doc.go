// Package proc changes the process that it runs in, and makes the system calls that differ among systems.
//
// A program that reads the output of a script waits until every process that can still write it has ended. Processes of
// Parley that outlive such a script let their outputs go: a node its standard output, which it never uses, and a wait
// its standard error. RefuseTracing keeps other processes of the same user from reading the memory of this one, where
// the system can. TuneCollector paces the garbage collector, and LimitMemory has it stay within the memory of the process's control group.
// ReturnMemory gives memory back when a busy process rests. The package also locks files, starts and ends other
// processes and reads the free space of a disk. Each system has its own calls for these. The package keeps no state.
package proc
