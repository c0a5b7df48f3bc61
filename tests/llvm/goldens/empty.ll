define void @fused_mul_div_erf_add_mul(ptr readonly %params, i64 %begin, i64 %end) nounwind {
entry:
  ret void
}
