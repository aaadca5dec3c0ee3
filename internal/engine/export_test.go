package engine

// Readdress is what a name with new addresses causes.
func (e *Engine) Readdress() { e.readdress() }

// Resolve makes a node ask these resolvers in place of the host's.
func (o *Options) Resolve(list ...string) { o.resolvers = list }
