package config

func textSchema(f *field) map[string]any { return map[string]any{"type": "string"} }
func typed(t string) func(*field) map[string]any {
	return func(*field) map[string]any { return map[string]any{"type": t} }
}
func pattern(p string) func(*field) map[string]any {
	return func(*field) map[string]any { return map[string]any{"type": "string", "pattern": p} }
}
func intSchema(f *field) map[string]any    { return map[string]any{"type": "integer"} }
func floatSchema(f *field) map[string]any  { return map[string]any{"type": "number"} }
func statusSchema(f *field) map[string]any { return map[string]any{"type": "integer"} }
