// Package base is what this node says for itself over Diameter: CER and CEA, DWR and DWA, DPR and DPA, AAR and STR, and
// the names of commands, applications and AVPs. It is the only home of go-diameter.
//
// One connection: Node.CER writes the first message of a connection we dialled; ReadCapabilities reads what came back,
// or what came first on a connection we accepted, with the walker of internal/diam, since that decides traffic; CEA
// answers it. DWR, DWA, DPR and DPA follow. What others sent reaches go-diameter's decoder only through Describe, after
// our walker has seen every AVP, groups included.
//
// Messages are built with go-diameter's types by the rules of diameter.md 0.1: the flags and both identifiers are set
// here, AVPs are named by code. It opens nothing and waits for nothing.
package base
