declare <4 x float> @llvm.masked.load.v4f32.p0(ptr, i32, <4 x i1>, <4 x float>)
declare float @erff(float)
declare void @llvm.masked.store.v4f32.p0(<4 x float>, ptr, i32, <4 x i1>)

define void @fused_mul_div_erf_add_mul(ptr readonly %params, i64 %begin, i64 %end) nounwind {
entry:
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %start, label %exit
start:
  %t0 = getelementptr ptr, ptr %params, i64 0
  %p0 = load ptr, ptr %t0, align 8
  %t1 = getelementptr ptr, ptr %params, i64 1
  %p1 = load ptr, ptr %t1, align 8
  %t2 = sub i64 %end, %begin
  %t3 = and i64 %t2, -4
  %main.end = add i64 %begin, %t3
  %has.main = icmp slt i64 %begin, %main.end
  br i1 %has.main, label %main, label %rest
main:
  %i = phi i64 [ %begin, %start ], [ %i.next, %main ]
  %t4 = getelementptr float, ptr %p0, i64 %i
  %t5 = load <4 x float>, ptr %t4, align 4
  ; mul
  %t6 = fmul <4 x float> %t5, splat (float 0x3FE0000000000000)
  ; div
  %t7 = fdiv <4 x float> %t5, splat (float 0x3FF6A09AA0000000)
  ; erf
  %t8 = extractelement <4 x float> %t7, i64 0
  %t9 = call float @erff(float %t8)
  %t10 = insertelement <4 x float> poison, float %t9, i64 0
  %t11 = extractelement <4 x float> %t7, i64 1
  %t12 = call float @erff(float %t11)
  %t13 = insertelement <4 x float> %t10, float %t12, i64 1
  %t14 = extractelement <4 x float> %t7, i64 2
  %t15 = call float @erff(float %t14)
  %t16 = insertelement <4 x float> %t13, float %t15, i64 2
  %t17 = extractelement <4 x float> %t7, i64 3
  %t18 = call float @erff(float %t17)
  %t19 = insertelement <4 x float> %t16, float %t18, i64 3
  ; add
  %t20 = fadd <4 x float> %t19, splat (float 0x3FF0000000000000)
  ; mul
  %t21 = fmul <4 x float> %t6, %t20
  %t22 = getelementptr float, ptr %p1, i64 %i
  store <4 x float> %t21, ptr %t22, align 4
  %i.next = add i64 %i, 4
  %more.main = icmp slt i64 %i.next, %main.end
  br i1 %more.main, label %main, label %rest
rest:
  %has.tail = icmp slt i64 %main.end, %end
  br i1 %has.tail, label %tail, label %done
tail:
  %j = phi i64 [ %main.end, %rest ], [ %j.next, %tail ]
  %t23 = sub i64 %end, %j
  %t24 = icmp slt i64 %t23, 4
  %t25 = select i1 %t24, i64 %t23, i64 4
  %t26 = trunc i64 %t25 to i32
  %t27 = insertelement <4 x i32> poison, i32 %t26, i64 0
  %t28 = shufflevector <4 x i32> %t27, <4 x i32> poison, <4 x i32> zeroinitializer
  %t29 = icmp ult <4 x i32> <i32 0, i32 1, i32 2, i32 3>, %t28
  %t30 = getelementptr float, ptr %p0, i64 %j
  %t31 = call <4 x float> @llvm.masked.load.v4f32.p0(ptr %t30, i32 4, <4 x i1> %t29, <4 x float> splat (float 1.0))
  ; mul
  %t32 = fmul <4 x float> %t31, splat (float 0x3FE0000000000000)
  ; div
  %t33 = fdiv <4 x float> %t31, splat (float 0x3FF6A09AA0000000)
  ; erf
  %t34 = extractelement <4 x float> %t33, i64 0
  %t35 = call float @erff(float %t34)
  %t36 = insertelement <4 x float> poison, float %t35, i64 0
  %t37 = extractelement <4 x float> %t33, i64 1
  %t38 = call float @erff(float %t37)
  %t39 = insertelement <4 x float> %t36, float %t38, i64 1
  %t40 = extractelement <4 x float> %t33, i64 2
  %t41 = call float @erff(float %t40)
  %t42 = insertelement <4 x float> %t39, float %t41, i64 2
  %t43 = extractelement <4 x float> %t33, i64 3
  %t44 = call float @erff(float %t43)
  %t45 = insertelement <4 x float> %t42, float %t44, i64 3
  ; add
  %t46 = fadd <4 x float> %t45, splat (float 0x3FF0000000000000)
  ; mul
  %t47 = fmul <4 x float> %t32, %t46
  %t48 = getelementptr float, ptr %p1, i64 %j
  call void @llvm.masked.store.v4f32.p0(<4 x float> %t47, ptr %t48, i32 4, <4 x i1> %t29)
  %j.next = add i64 %j, 4
  %more.tail = icmp slt i64 %j.next, %end
  br i1 %more.tail, label %tail, label %done
done:
  br label %exit
exit:
  ret void
}
