declare <16 x float> @llvm.copysign.v16f32(<16 x float>, <16 x float>)
declare <16 x float> @llvm.fabs.v16f32(<16 x float>)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
declare <16 x float> @llvm.rint.v16f32(<16 x float>)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr, i32, <16 x i1>)

define internal <16 x float> @sinter.erf.v16f32(<16 x float> %x) alwaysinline nounwind {
  %t0 = call <16 x float> @llvm.fabs.v16f32(<16 x float> %x)
  %t1 = fmul <16 x float> %x, %x
  %t2 = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0xBF438E0000000000), <16 x float> %t1, <16 x float> splat (float 0x3F7471A580000000))
  %t3 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t2, <16 x float> %t1, <16 x float> splat (float 0xBF9B691B20000000))
  %t4 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t3, <16 x float> %t1, <16 x float> splat (float 0x3FBCE1C440000000))
  %t5 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t4, <16 x float> %t1, <16 x float> splat (float 0xBFD8127000000000))
  %t6 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t5, <16 x float> %t1, <16 x float> splat (float 0x3FC06EBA80000000))
  %t7 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t6, <16 x float> %x, <16 x float> %x)
  %t8 = fcmp olt <16 x float> %t0, splat (float 0x4010000000000000)
  %t9 = select <16 x i1> %t8, <16 x float> %t0, <16 x float> splat (float 0x4010000000000000)
  %t10 = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0xBEF2200000000000), <16 x float> %t9, <16 x float> splat (float 0x3F391CFB20000000))
  %t11 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t10, <16 x float> %t9, <16 x float> splat (float 0xBF6FD14380000000))
  %t12 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t11, <16 x float> %t9, <16 x float> splat (float 0x3F98D63420000000))
  %t13 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t12, <16 x float> %t9, <16 x float> splat (float 0xBFBB55CB80000000))
  %t14 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t13, <16 x float> %t9, <16 x float> splat (float 0xBFE450AA00000000))
  %t15 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t14, <16 x float> %t9, <16 x float> splat (float 0xBFC079D0C0000000))
  %t16 = fneg <16 x float> %t9
  %t17 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t15, <16 x float> %t9, <16 x float> %t16)
  %t18 = fmul <16 x float> %t17, splat (float 0x3FF7154760000000)
  %t19 = call <16 x float> @llvm.rint.v16f32(<16 x float> %t18)
  %t20 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t19, <16 x float> splat (float 0xBFE62E4000000000), <16 x float> %t17)
  %t21 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t19, <16 x float> splat (float 0xBEB7F7D1C0000000), <16 x float> %t20)
  %t22 = call <16 x float> @llvm.fma.v16f32(<16 x float> splat (float 0x3F56940000000000), <16 x float> %t21, <16 x float> splat (float 0x3F8125EDC0000000))
  %t23 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t22, <16 x float> %t21, <16 x float> splat (float 0x3FA555B5A0000000))
  %t24 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t23, <16 x float> %t21, <16 x float> splat (float 0x3FC5554500000000))
  %t25 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t24, <16 x float> %t21, <16 x float> splat (float 0x3FDFFFFF60000000))
  %t26 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t25, <16 x float> %t21, <16 x float> splat (float 0x3FF0000000000000))
  %t27 = call <16 x float> @llvm.fma.v16f32(<16 x float> %t26, <16 x float> %t21, <16 x float> splat (float 0x3FF0000000000000))
  %t28 = fptosi <16 x float> %t19 to <16 x i32>
  %t29 = shl <16 x i32> %t28, splat (i32 23)
  %t30 = bitcast <16 x float> %t27 to <16 x i32>
  %t31 = add <16 x i32> %t30, %t29
  %t32 = bitcast <16 x i32> %t31 to <16 x float>
  %t33 = fsub <16 x float> splat (float 0x3FF0000000000000), %t32
  %t34 = call <16 x float> @llvm.copysign.v16f32(<16 x float> %t33, <16 x float> %x)
  %t35 = fcmp ogt <16 x float> %t0, splat (float 0x3FEDB00000000000)
  %t36 = select <16 x i1> %t35, <16 x float> %t34, <16 x float> %t7
  ret <16 x float> %t36
}

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
  %t3 = and i64 %t2, -16
  %main.end = add i64 %begin, %t3
  %has.main = icmp slt i64 %begin, %main.end
  br i1 %has.main, label %main, label %rest
main:
  %i = phi i64 [ %begin, %start ], [ %i.next, %main ]
  %t4 = getelementptr float, ptr %p0, i64 %i
  %t5 = load <16 x float>, ptr %t4, align 4
  ; mul
  %t6 = fmul <16 x float> %t5, splat (float 0x3FE0000000000000)
  ; div
  %t7 = fdiv <16 x float> %t5, splat (float 0x3FF6A09AA0000000)
  ; erf
  %t8 = call <16 x float> @sinter.erf.v16f32(<16 x float> %t7)
  ; add
  %t9 = fadd <16 x float> %t8, splat (float 0x3FF0000000000000)
  ; mul
  %t10 = fmul <16 x float> %t6, %t9
  %t11 = getelementptr float, ptr %p1, i64 %i
  store <16 x float> %t10, ptr %t11, align 4
  %i.next = add i64 %i, 16
  %more.main = icmp slt i64 %i.next, %main.end
  br i1 %more.main, label %main, label %rest
rest:
  %has.tail = icmp slt i64 %main.end, %end
  br i1 %has.tail, label %tail, label %done
tail:
  %j = phi i64 [ %main.end, %rest ], [ %j.next, %tail ]
  %t12 = sub i64 %end, %j
  %t13 = icmp slt i64 %t12, 16
  %t14 = select i1 %t13, i64 %t12, i64 16
  %t15 = trunc i64 %t14 to i32
  %t16 = insertelement <16 x i32> poison, i32 %t15, i64 0
  %t17 = shufflevector <16 x i32> %t16, <16 x i32> poison, <16 x i32> zeroinitializer
  %t18 = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %t17
  %t19 = getelementptr float, ptr %p0, i64 %j
  %t20 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %t19, i32 4, <16 x i1> %t18, <16 x float> splat (float 1.0))
  ; mul
  %t21 = fmul <16 x float> %t20, splat (float 0x3FE0000000000000)
  ; div
  %t22 = fdiv <16 x float> %t20, splat (float 0x3FF6A09AA0000000)
  ; erf
  %t23 = call <16 x float> @sinter.erf.v16f32(<16 x float> %t22)
  ; add
  %t24 = fadd <16 x float> %t23, splat (float 0x3FF0000000000000)
  ; mul
  %t25 = fmul <16 x float> %t21, %t24
  %t26 = getelementptr float, ptr %p1, i64 %j
  call void @llvm.masked.store.v16f32.p0(<16 x float> %t25, ptr %t26, i32 4, <16 x i1> %t18)
  %j.next = add i64 %j, 16
  %more.tail = icmp slt i64 %j.next, %end
  br i1 %more.tail, label %tail, label %done
done:
  br label %exit
exit:
  ret void
}
