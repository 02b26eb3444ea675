// rclone with the one remote and the one command that the tests of backups need: "s3 FOLDER" serves a folder as S3.
package main

import (
	_ "github.com/rclone/rclone/backend/local"
	"github.com/rclone/rclone/cmd"
	"github.com/rclone/rclone/cmd/serve/s3"
)

func main() {
	cmd.Root.AddCommand(s3.Command)
	cmd.Main()
}
