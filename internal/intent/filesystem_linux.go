package intent

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// localKinds are the file systems on which locks and shared memory are known to work for every process that
// can open the files. All others are refused, because a list of network file systems would never be complete.
// FUSE (sshfs, gcsfuse, virtiofs, Docker Desktop's shared folders) and 9p (WSL's /mnt/c) don't reveal what is
// behind them.
var localKinds = map[uint32]string{
	unix.EXT4_SUPER_MAGIC:      "ext2/ext3/ext4",
	unix.XFS_SUPER_MAGIC:       "xfs",
	unix.BTRFS_SUPER_MAGIC:     "btrfs",
	unix.BCACHEFS_SUPER_MAGIC:  "bcachefs",
	unix.F2FS_SUPER_MAGIC:      "f2fs",
	unix.NILFS_SUPER_MAGIC:     "nilfs2",
	unix.REISERFS_SUPER_MAGIC:  "reiserfs",
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.RAMFS_MAGIC:           "ramfs",
	unix.ECRYPTFS_SUPER_MAGIC:  "ecryptfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", // containers; its upper layer can't be on NFS
	0x2fc12fc1:                 "zfs",
	0x3153464a:                 "jfs",
}

// remoteKinds are names for the error message only.
var remoteKinds = map[uint32]string{
	unix.NFS_SUPER_MAGIC:   "nfs",
	unix.CIFS_SUPER_MAGIC:  "cifs",
	unix.SMB_SUPER_MAGIC:   "smb",
	unix.SMB2_SUPER_MAGIC:  "smb2",
	unix.V9FS_MAGIC:        "9p",
	unix.FUSE_SUPER_MAGIC:  "fuse",
	unix.CEPH_SUPER_MAGIC:  "ceph",
	unix.AFS_SUPER_MAGIC:   "afs",
	unix.CODA_SUPER_MAGIC:  "coda",
	unix.OCFS2_SUPER_MAGIC: "ocfs2",
	unix.MSDOS_SUPER_MAGIC: "vfat",
	0x01161970:             "gfs2",
	0x0bd00bd0:             "lustre",
	0x47504653:             "gpfs",
}

// CheckFileSystem returns an error that names the file system of dir if it is not known to be local: a store of
// intents can't be there, and changes made elsewhere may not be reported.
func CheckFileSystem(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("can't find out on which file system %s is: %w", dir, err)
	}
	return localKind(dir, uint32(st.Type))
}

func localKind(dir string, kind uint32) error {
	if localKinds[kind] != "" {
		return nil
	}
	name := remoteKinds[kind]
	if name == "" {
		name = fmt.Sprintf("type %#x", kind)
	}
	return notLocal(dir, name)
}
