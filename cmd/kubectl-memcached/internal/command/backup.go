package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
	"github.com/memcached-operator/memcached-operator/cmd/kubectl-memcached/internal/cluster"
)

func (p *plugin) backup() *cobra.Command {
	var from, claim, subPath string
	cmd := &cobra.Command{
		Use: "backup NAME", Short: "Back up the items of a Memcached now",
		Long: `Create a MemcachedBackup. Its shards keep serving.

The backup is as those of the schedule that --from names, or is stored in the PersistentVolumeClaim that --claim names. Without either, it
is as those of the only schedule of the Memcached, or is stored where spec.backup.final says. No retention deletes it; its own
deletion deletes the snapshot where that of the schedule's backups does.`,
		Example: "  kubectl memcached backup cache\n  kubectl memcached backup cache --from nightly\n  kubectl memcached backup cache --claim memcached-backups",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if from != "" && claim != "" || subPath != "" && claim == "" {
				return usageError{errors.New("--from and --claim exclude each other, and --sub-path needs --claim")}
			}
			c, m, err := p.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			b := &v1beta1.MemcachedBackup{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, GenerateName: m.Name + "-"}}
			if claim != "" {
				b.Spec.Store.PersistentVolumeClaim = &v1beta1.PersistentVolumeClaimStore{ClaimName: claim, SubPath: subPath}
			} else if b.Spec, err = backupLike(cmd.Context(), c, m, from); err != nil {
				return err
			}
			b.Spec.MemcachedRef.Name = m.Name
			if err := c.Create(cmd.Context(), "MemcachedBackup", b); err != nil {
				return err
			}
			fmt.Fprintf(p.streams.Out, "MemcachedBackup %s is created: \"kubectl %s get memcachedbackup %[1]s -w\" shows the progress\n", b.Name, c.Flags)
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "Name of the MemcachedScheduledBackup that the backup is as those of")
	cmd.Flags().StringVar(&claim, "claim", "", "Name of the PersistentVolumeClaim that stores the backup")
	cmd.Flags().StringVar(&subPath, "sub-path", "", "Directory in the volume of --claim")
	return cmd
}

// backupLike returns the spec of a backup as a schedule creates them, or of one to the store of spec.backup.final.
func backupLike(ctx context.Context, c *cluster.Cluster, m *v1beta1.Memcached, from string) (v1beta1.MemcachedBackupSpec, error) {
	schedules, err := c.Schedules(ctx, client.ObjectKeyFromObject(m))
	if err != nil {
		return v1beta1.MemcachedBackupSpec{}, err
	}
	names := make([]string, 0, len(schedules))
	for _, s := range schedules {
		if s.Name == from || from == "" && len(schedules) == 1 {
			return s.BackupSpec(), nil
		}
		names = append(names, s.Name)
	}
	final := m.Spec.Backup.Final
	switch {
	case from != "":
		return v1beta1.MemcachedBackupSpec{}, fmt.Errorf("no MemcachedScheduledBackup %s backs up %s: use --claim, or one of --from=[%s]", from, m.Name, strings.Join(names, " "))
	case len(names) > 1:
		return v1beta1.MemcachedBackupSpec{}, usageError{fmt.Errorf("%s has several schedules: choose one of --from=[%s]", m.Name, strings.Join(names, " "))}
	case final == nil:
		return v1beta1.MemcachedBackupSpec{}, usageError{fmt.Errorf("%s has neither a schedule nor spec.backup.final: name a PersistentVolumeClaim with --claim, or create a MemcachedBackup", m.Name)}
	}
	return v1beta1.MemcachedBackupSpec{Store: final.Store}, nil
}

func (p *plugin) restore() *cobra.Command {
	var (
		backup         string
		maxAge, maxTTL time.Duration
		replace        bool
	)
	cmd := &cobra.Command{
		Use: "restore NAME", Short: "Load the items of a backup into a Memcached",
		Long: `Create a MemcachedRestore. It loads the items of the backup that --backup names, or of the last complete one, into the Memcached, which
keeps serving.

A restored value is as old as the backup: clients read it until it expires or is written again. --max-ttl limits for how long, and
--max-age rejects an older backup.`,
		Example: "  kubectl memcached restore cache --max-age 6h --max-ttl 15m\n  kubectl memcached restore cache --backup nightly-1",
		Args:    cobra.ExactArgs(1), ValidArgsFunction: p.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, m, err := p.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if backup == "" {
				if backup, err = lastComplete(cmd.Context(), c, m); err != nil {
					return err
				}
			}
			r := &v1beta1.MemcachedRestore{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, GenerateName: m.Name + "-"}}
			r.Spec.MemcachedRef.Name, r.Spec.BackupRef = m.Name, &v1beta1.BackupReference{Name: backup}
			r.Spec.MaxAgeSeconds, r.Spec.MaxTTLSeconds = limit(maxAge), limit(maxTTL)
			if replace {
				r.Spec.ExistingItems = v1beta1.ExistingReplace
			}
			if err := c.Create(cmd.Context(), "MemcachedRestore", r); err != nil {
				return err
			}
			fmt.Fprintf(p.streams.Out, "MemcachedRestore %s loads MemcachedBackup %s: \"kubectl %s get memcachedrestore %[1]s -w\" shows the progress\n", r.Name, backup, c.Flags)
			return nil
		},
	}
	cmd.Flags().StringVar(&backup, "backup", "", "Name of the MemcachedBackup. Default: the last one of this Memcached that is complete")
	addDuration(cmd, &maxAge, "max-age", 0, math.MaxInt32*time.Second, "Reject a backup that is older, such as 6h. Default: no limit")
	addDuration(cmd, &maxTTL, "max-ttl", 0, math.MaxInt32*time.Second, "Limit how long a restored item lives, such as 15m. Default: no limit")
	cmd.Flags().BoolVar(&replace, "replace", false, "Replace items that the Memcached contains. By default, it keeps them, since they are newer")
	return cmd
}

// lastComplete returns the name of the backup of a Memcached that was completed last.
func lastComplete(ctx context.Context, c *cluster.Cluster, m *v1beta1.Memcached) (string, error) {
	all, err := c.Backups(ctx, client.ObjectKeyFromObject(m))
	if err != nil {
		return "", err
	}
	var last *v1beta1.MemcachedBackup
	for i := range all {
		b := &all[i]
		if b.Status.Phase == v1beta1.TransferComplete && b.DeletionTimestamp == nil && (last == nil || last.Status.CompletionTime.Before(b.Status.CompletionTime)) {
			last = b
		}
	}
	if last == nil {
		return "", fmt.Errorf("%s has no complete backup: name one of another Memcached with --backup", m.Name)
	}
	return last.Name, nil
}

// limit returns a duration in whole seconds; nil for none.
func limit(d time.Duration) *int32 {
	if d == 0 {
		return nil
	}
	return ptr.To(int32(seconds(d)))
}
