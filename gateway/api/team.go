package api

// ListTeamsRequest lists the teams that the agent is in, or with Team that one, and who is there. The host sees all.
type ListTeamsRequest struct {
	Acting
	Team string `json:"team,omitempty"`
}

// SetTeamRequest adds agents to a team of the host's, which it makes if there is none with the name, or removes them. Members may
// write to each other and to the team. The sessions of a coding agent are in the teams of the agent of their folder.
type SetTeamRequest struct {
	Acting
	Team   string   `json:"team"`
	Add    []string `json:"add,omitempty"` // names, or as in fetch_agent
	Remove []string `json:"remove,omitempty"`

	Coder *TeamCoder `json:"coder,omitempty"` // to add: the agent of a folder, which is made if there is none
}

// TeamCoder is a coding agent, and the folder that it works in.
type TeamCoder struct {
	Program string `json:"program"` // claude-code, codex
	Title   string `json:"title"`   // Claude Code, Codex
	Folder  string `json:"folder"`  // an absolute path
}

// EndTeamRequest ends a team of the host's.
type EndTeamRequest struct {
	Acting
	Team string `json:"team"`
}
