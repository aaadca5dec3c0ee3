package engine

// Readdress is what a name with new addresses causes.
func (e *Engine) Readdress() { e.readdress() }
