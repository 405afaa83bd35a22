# zsh -f zsh_proposals.zsh FILE WORD…: what the completion in FILE proposes for the last word, one a line. In place of the
# line editor stand zsh's own helpers, reduced to printing what they are given.
source_file=$1
shift
compdef() { }
_normal() { }
matching() {
  local text
  for text in "$@"; do [[ $text == ${words[CURRENT]}* ]] && print -r -- $text; done
}
_describe() { matching ${${(P)2}%%:*} }
_arguments() {
  local spec
  shift  # the colon before the specifications
  for spec in "$@"; do
    [[ $spec == ${words[CURRENT - 1]}=\[* && $spec == *:\(*\) ]] || continue
    matching ${=${${spec##*:\(}%\)}}
    return
  done
  matching ${${(M)@:#--*}%%[=\[]*}
}
source $source_file
words=("$@")
CURRENT=$#
_sluice || true  # its status is that of the last proposal that did not fit
