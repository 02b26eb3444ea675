package plan

// What the tests with fixtures use: those import this package.
var (
	CanMove          = canMove
	DesiredShards    = desiredShards
	HitRatioRecovery = hitRatioRecovery
	PlanRepeats      = planRepeats
	PlanResources    = planResources
	PlanStep         = planStep
)
