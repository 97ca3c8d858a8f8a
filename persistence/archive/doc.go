// Package archive keeps the commits that have left a node's journal, in sealed files.
//
// A segment holds the frames of consecutive commits, in blocks compressed by zstd. A frame is kept without its hash and
// without the hash of the frame before: reading puts both back. Its footer lists the blocks with the hash of the last
// commit and the digest of each. The digest of the footer names the segment in the record that the journal keeps.
//
// A checkpoint holds the states of all mailboxes after the last archived commit, with the commits of each mailbox. It
// is in blocks as segments are. A manifest lists the segments and the checkpoint. It is kept twice, and each file is
// repaired from the other.
//
// The package promises:
//   - A segment has its name only when it is whole and on disk. It never changes afterwards.
//   - A frame that is read is the frame that was added: each read checks the digest of the block and the chain of hashes.
//   - A segment from elsewhere is hostile until Open has compared it with the record. No size in a file is trusted
//     before it is bounded.
//
// It does not know whose commits are archived, or when. It does not hide a segment that is elsewhere: Open fails with
// fs.ErrNotExist.
package archive
