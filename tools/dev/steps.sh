# What a command is doing: the step's number, what it does, how long it took.

steps_done=0 steps_all=0 step_began=0

steps() { # COUNT: of the steps that follow
  steps_done=0 steps_all=$1 step_began=$SECONDS
}

# Ends the step before and begins the next one.
step() { # TEXT
  step_end
  steps_done=$((steps_done + 1)) step_began=$SECONDS
  echo "dev: step $steps_done of $steps_all: $1"
}

step_end() {
  [ "$steps_done" = 0 ] || echo "dev: step $steps_done took $((SECONDS - step_began)) s; $SECONDS s since the start"
}
