// Package risk tells what may go wrong if a tool call is made: how much, in two or three words, in a sentence, and by which
// words of a command line.
//
// It reads command lines as a shell does, follows programs that run other programs, and knows the options of common ones that
// delete, publish, change what others share, or reach beyond the folder of the call. What it cannot read is high: a call is
// never called harmless because it is not understood.
//
// Promised: time and result are bounded for any input, and the same input gives the same findings. Not promised: that it finds
// all. A program that the folder has can do anything. The findings help a person to decide and decide nothing. The package is
// pure: it compares text, and follows no links.
//
// Texts of findings have words of the call. They are neither HTML nor safe for a terminal: whoever shows them escapes them.
package risk
