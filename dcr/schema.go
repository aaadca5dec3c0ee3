package dcr

import _ "embed" // for the schemas

var (
	//go:embed schema/dcr.dtd
	schemaDTD string
	//go:embed schema/dcr.rng
	schemaRNG string
	//go:embed schema/dcr.rnc
	schemaRNC string
	//go:embed schema/dcr.xsd
	schemaXSD string
)

// DTD is the document type definition of the language, for editors and outside checks. None of the schemas describes
// affinity.sip.header_match, and lint knows more than all of them.
func DTD() string { return schemaDTD }

// RNG is the RELAX NG schema in XML syntax.
func RNG() string { return schemaRNG }

// RNC is the RELAX NG schema in compact syntax, from which RNG and XSD are made.
func RNC() string { return schemaRNC }

// XSD is the W3C XML Schema. It cannot say that exist needs parameter and return.
func XSD() string { return schemaXSD }
