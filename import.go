package catalogd

import "github.com/catalogd/catalogd/internal/importer"

// Import, and what it makes of a file.
type (
	// ImportConfig names the file, for positions, and the servers to import; without names all that are enabled.
	ImportConfig = importer.Config
	// Imported is what became of a file: CUE with its servers, and notes on what was changed or left out.
	Imported = importer.Import
	// ImportedServer is one server of an Imported.
	ImportedServer = importer.Server
	// ImportNote says what of a file was changed or left out, or why it can't be imported.
	ImportNote = importer.Note
	// ImportRefusedError has everything for which a file can't be imported.
	ImportRefusedError = importer.RefusedError
	// UnknownServerError is the error for a name that no server of the file has.
	UnknownServerError = importer.UnknownError
)

// Import translates the configuration of another MCP client, such as .mcp.json, into servers in CUE, as `catalogd
// import` does. It starts and reaches nothing, and no secret of the file is in what it returns. Imported servers are
// not trusted by that: the policy decides. The error is an *ImportRefusedError or an *UnknownServerError.
func Import(data []byte, cfg ImportConfig) (*Imported, error) { return importer.Read(data, cfg) }
