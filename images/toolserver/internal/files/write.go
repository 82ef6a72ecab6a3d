package files

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"rollcage.dev/toolserver/internal/disk"
	"rollcage.dev/toolserver/internal/launch"
	"rollcage.dev/toolserver/internal/tool"
)

const writeDescription = "Write a file, replacing it if it exists. Missing directories are made. An existing file keeps its mode."

const writeParameters = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "minLength": 1, "description": "File, absolute or relative to the work directory."},
    "content": {"type": "string", "description": "The whole new content."},
    "encoding": {"type": "string", "enum": ["text", "base64"], "description": "How content is given; text by default."},
    "mode": {"type": "string", "pattern": "^0?[0-7]{3}$", "description": "Permissions in octal, for example 0755."}
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`

type writeArguments struct {
	Path     string `json:"path"`
	Content  string `json:"content"`
	Encoding string `json:"encoding"`
	Mode     string `json:"mode"`
}

type written struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
}

func write(_ context.Context, base *launch.Base, args writeArguments) tool.Result {
	content := []byte(args.Content)
	if args.Encoding == "base64" {
		decoded, err := base64.StdEncoding.DecodeString(args.Content)
		if err != nil {
			return malformed("content is not base64: " + err.Error())
		}
		content = decoded
	}
	var mode uint64
	if args.Mode != "" {
		var err error
		if mode, err = strconv.ParseUint(args.Mode, 8, 12); err != nil || mode > 0o777 {
			return malformed("mode must be octal permissions such as 0644")
		}
	}
	path := base.Path(args.Path)
	err := disk.Replace(path, fs.FileMode(mode), func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if err != nil {
		return failure("write", path, err)
	}
	return tool.Result{
		Class:  tool.OK,
		Output: fmt.Sprintf("wrote %d bytes to %s", len(content), path),
		Data:   written{Path: path, Bytes: len(content)},
	}
}
