// Package fsck examines and repairs a data folder that no gateway has open: metadata in bbolt, journals on disk, checkpoints
// beside them. Check reads everything and changes nothing; Repair cuts off what is broken, keeps the damaged bytes beside the
// new ones (*.damaged), and sees to it that no offset that was lost is given again.
//
// Start with Check. A Problem is a place and what is wrong there; Lost is what that means for a partition.
//
// Not supported: getting anything back out of broken bytes; folders of a cluster.
package fsck
